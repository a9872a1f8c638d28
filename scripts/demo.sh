#!/usr/bin/env bash
# usage: demo.sh BUILD_DIR -- the main job on a simulated machine: programs share one GPU, each in
# its own share. Shows what it does, checks what it promises, ends non-zero when a promise fails.
set -euo pipefail
build=$(cd "${1:?usage: demo.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
aliquot=$build/bin/aliquot
python=$here/../build/clients/venv/bin/python
work=$(mktemp -d /tmp/aliquot-demo.XXXXXX)
export ALIQUOT_STATE_DIR=$work/state
unset ALIQUOT_SIM ALIQUOT_LEASE

finish() {
  local status=$?
  trap - EXIT
  jobs -p | xargs -r kill 2>/dev/null || true
  wait || true
  "$aliquot" sim down --all >/dev/null 2>&1 || true
  "$aliquot" broker --stop >/dev/null 2>&1 || true
  [ "$status" = 0 ] && rm -rf "$work" || echo "demo: FAILED; what was printed lies in $work"
  exit "$status"
}
trap finish EXIT

show() { printf '\n$ aliquot %s\n' "$*"; "$aliquot" "$@"; }
field() { python3 -c "import json, sys; print(json.load(open('$1'))['$2'])"; }
check() {  # WHAT EXPECTED FOUND
  [ "$2" = "$3" ] || { echo "demo: $1: expected $2, found $3"; exit 1; }
  echo "  ok: $1"
}
used_of() { "$aliquot" share get "$1" --json | python3 -c \
  'import json, sys; print(json.load(sys.stdin)["leases"][0]["gpus"][0]["used_bytes"])'; }
eventually() {  # WHAT COMMAND...: within two seconds
  local what=$1
  shift
  for _ in $(seq 100); do "$@" && { echo "  ok: $what"; return; }; sleep 0.02; done
  echo "demo: not within two seconds: $what"
  exit 1
}

echo "== A simulated machine with eight A100 GPUs"
show sim up --node a100x8 --name demo

echo; echo "== Two programs on its GPU 0, each in its own share"
cat <<'EOF'

$ aliquot run --name small --gpu 0 --memory 4GiB  -- aliquot burn --memory 6GiB --seconds 8 &
$ aliquot run --name large --gpu 0 --memory 16GiB -- aliquot burn --memory 12GiB --seconds 8 &
EOF
"$aliquot" run --name small --gpu 0 --memory 4GiB -- \
  "$aliquot" burn --memory 6GiB --seconds 8 >"$work/small.json" &
small=$!
"$aliquot" run --name large --gpu 0 --memory 16GiB -- \
  "$aliquot" burn --memory 12GiB --seconds 8 >"$work/large.json" &
large=$!
used_at_least() { local used; used=$(used_of "$1" 2>/dev/null) && [ "$used" -ge "$2" ]; }
eventually "small took what its share has" used_at_least small $((3 << 30))
eventually "large took its 12 GiB" used_at_least large $((12 << 30))

echo; echo "== A third program, killed with SIGKILL while it holds memory"
printf '\n$ aliquot run --name third --gpu 0 --memory 8GiB -- aliquot burn --memory 5GiB --seconds 60 &\n'
"$aliquot" run --name third --gpu 0 --memory 8GiB -- \
  sh -c 'echo $$ >"$0"; exec "$1" burn --memory 5GiB --seconds 60' "$work/third.pid" "$aliquot" \
  >/dev/null &
third=$!
eventually "third holds its 5 GiB" used_at_least third $((5 << 30))
gpu_used() { "$aliquot" smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }
before=$(gpu_used)
kill -KILL "$(cat "$work/third.pid")"
freed() { [ $((before - $(gpu_used))) -ge 5120 ]; }
gone() { ! "$aliquot" share get third >/dev/null 2>&1; }
eventually "its memory is free again on the GPU" freed
wait "$third" || true
eventually "and nothing of its lease is left" gone

echo; echo "== What a program that nobody here wrote sees of the large share"
if [ -x "$python" ]; then
  printf '\n$ aliquot run --lease large -- python demo_client.py\n'
  "$aliquot" run -q --lease large -- "$python" "$here/demo_client.py" | tee "$work/client.txt"
  check "NVML lists one GPU" 1 "$(sed -n 's/^GPUs listed by NVML: //p' "$work/client.txt")"
  check "NVML and the CUDA driver agree on the share's size" \
    "$(sed -n 's/^total by NVML: //p' "$work/client.txt")" \
    "$(sed -n 's/^total by cuMemGetInfo: //p' "$work/client.txt")"
  printf '\n$ aliquot run --lease large -- gpustat\n'
  "$aliquot" run -q --lease large -- "$(dirname "$python")/gpustat" --no-header | tee "$work/gpustat.txt"
  check "gpustat lists one GPU, of the share's size" "/ 16384 MB" "$(grep -o '/ [0-9]* MB' "$work/gpustat.txt")"
else
  echo "  left out: the Python clients could not be installed (PyPI did not answer)"
fi

echo; echo "== Who was granted, used and was refused what (simulated)"
show ps
show smi
wait "$small" "$large"

echo; echo "== What the two programs met"
check "small saw a GPU of 4 GiB" $((4 << 30)) "$(field "$work/small.json" total_bytes)"
check "large saw a GPU of 16 GiB" $((16 << 30)) "$(field "$work/large.json" total_bytes)"
check "small was refused at its limit" CUDA_ERROR_OUT_OF_MEMORY "$(field "$work/small.json" refusal)"
check "large got all it asked for" $((12 << 30)) "$(field "$work/large.json" held_bytes)"
check "large was refused nothing" None "$(field "$work/large.json" refusal)"
echo; echo "demo: every promise held (simulated machine)"
