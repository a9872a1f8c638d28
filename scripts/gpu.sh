#!/usr/bin/env bash
# usage: gpu.sh BUILD_DIR -- the checks that need a real GPU, in under eight minutes; builds nothing.
# Prints each figure; ends with 0 where there is no GPU, and says so. What this machine cannot do (no
# PyTorch, no namespaces, no pidfds) is said and left out.
set -euo pipefail
build=$(cd "${1:?usage: gpu.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
aliquot=$build/bin/aliquot
limit_s=470
began=$SECONDS failed=0

note() { echo "gpu: $*"; }
if ! timeout 20 nvidia-smi -L >/dev/null 2>&1; then
  note "skipped: no NVIDIA driver answers on this machine (nvidia-smi -L)"
  exit 0
fi
[ -x "$aliquot" ] || { note "$aliquot is not built: make build"; exit 1; }
if [ -z "${ALIQUOT_GPU_BOUNDED:-}" ]; then
  status=0
  ALIQUOT_GPU_BOUNDED=1 timeout --kill-after=5 $limit_s "$0" "$build" || status=$?
  if [ $status = 124 ] || [ $status = 137 ]; then note "FAILED: not done within $limit_s s"; fi
  exit $status
fi
unset ALIQUOT_SIM ALIQUOT_LEASE LD_PRELOAD
work=$(mktemp -d /tmp/aliquot-gpu.XXXXXX)
export ALIQUOT_STATE_DIR=$work/state
finish() {
  "$aliquot" broker --stop >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/gpu: /'
note "kernel $(uname -r); $(nproc) cores"

# Launches a second, in a share and outside: kernels of a microsecond, so that the host's side shows.
launches() { "$@" burn --kernels 1us --depth 1000 --seconds 2 |
  python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["kernels"] / d["kernel_seconds"])'; }

if ! python3 -c 'import os; os.close(os.pidfd_open(os.getpid()))' 2>"$work/why"; then
  note "this kernel lacks pidfds ($(tail -1 "$work/why")), so there are no shares here:" \
    "the launch in a share, the twelve cells and torch are left out"
  note "a launch takes $(launches "$aliquot" | python3 -c 'print(round(1e9 / float(input())))') ns outside"
  note "passed, in part, in $((SECONDS - began)) s"
  exit 0
fi
# Says itself where the mount calls are lacking; all of this works without them.
"$aliquot" run --memory 1GiB -- true 2>&1 | grep 'cooperative limits only' | sed 's/^aliquot run/gpu/' || true

# In turns, the best of each: what else the host does only ever adds.
for _ in 1 2 3 4 5; do
  launches "$aliquot" >>"$work/outside"
  launches "$aliquot" run -q --memory 4GiB --cores 100 -- "$aliquot" >>"$work/inside"
done
python3 - "$work/outside" "$work/inside" <<'PY' || failed=1
import sys
outside, inside = (1e9 / max(map(float, open(path))) for path in sys.argv[1:])
more = inside - outside
print(f"gpu: a launch takes {outside:.0f} ns outside, {inside:.0f} ns in a share: {more:+.0f} ns")
sys.exit(more > 25)
PY

if python3 -c 'import torch' 2>/dev/null; then
  pids=()
  for one in other:70 own:30; do
    name=${one%:*}
    "$aliquot" run -q --name "$name" --gpu 0 --memory 4GiB --cores "${one#*:}" -- \
      python3 "$here/gpu_torch.py" "$work/$name.ready" "$work/go" 20 >"$work/$name" &
    pids+=($!)
  done
  for _ in $(seq 600); do
    if [ -e "$work/other.ready" ] && [ -e "$work/own.ready" ]; then break; fi
    sleep 0.1
  done
  python3 -c 'import time; print(time.time() + 2)' >"$work/go.new"
  mv "$work/go.new" "$work/go"
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  sed 's/^/gpu: torch, 30 %: /' "$work/own"
  python3 - "$work/own" "$work/other" <<'PY' || failed=1
import json, sys
own, other = (json.load(open(path)) for path in sys.argv[1:])
share = 100 * own["steps"] / (own["steps"] + other["steps"])
print(f"gpu: torch: {share:.1f} % of the steps for 30 % of the time")
less = own["free"] - own["free_beside"]
sys.exit(not (abs(share - 30) <= 2 and own["total"] == 4 << 30 and "out of memory" in own["refusal"]
              and own["free"] <= own["total"] and own["taken"] <= less <= 1.25 * own["taken"]))
PY
else
  note "torch left out: no PyTorch here (pip install torch)"
fi

# Twelve cells of ten seconds, against the driver's own utilisation samples, held to the limits of
# `make bench`; again while this host wakes sleepers too late for the figures to count.
if ! python3 "$here/bench.py" "$build" --check --only shares_bench.py -- --real >"$work/cells"; then
  failed=1
fi
[ ! -s "$work/cells" ] || python3 - "$work/cells" <<'PY'
import json, sys
cells = json.load(open(sys.argv[1]))["shares_bench.py"]
for cell in cells["cells"]:
    print(f"gpu: {cell['cell']}: error {cell['mean_error_points']:.2f}, busy {cell['busy_percent']:.1f} %")
print(f"gpu: mean error {cells['mean_error_points']:.2f}, worst {cells['worst_error_points']:.2f} points")
PY
note "$([ $failed = 0 ] && echo passed || echo FAILED) in $((SECONDS - began)) s"
exit $failed
