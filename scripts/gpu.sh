#!/usr/bin/env bash
# usage: gpu.sh BUILD_DIR -- the checks that need a real GPU, in under eight minutes; builds nothing.
# Prints each figure; ends with 0 where there is no GPU, and says so. What this machine cannot do (no
# PyTorch, no namespaces) is said and left out.
set -euo pipefail
build=$(cd "${1:?usage: gpu.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
aliquot=$build/bin/aliquot
began=$SECONDS failed=0

note() { echo "gpu: $*"; }
if ! timeout 20 nvidia-smi -L >/dev/null 2>&1; then
  note "skipped: no NVIDIA driver answers on this machine (nvidia-smi -L)"
  exit 0
fi
[ -x "$aliquot" ] || { note "$aliquot is not built: make build"; exit 1; }
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
launches() { "$@" burn --kernels 1us --depth 1000 --seconds 5 |
  python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["kernels"] / d["kernel_seconds"])'; }
outside=$(launches "$aliquot")
inside=$(launches "$aliquot" run --memory 4GiB --cores 100 -- "$aliquot")
python3 - "$outside" "$inside" <<'PY' || failed=1
import sys
outside, inside = map(float, sys.argv[1:])
more = 1e9 / inside - 1e9 / outside
print(f"gpu: a launch takes {1e9 / outside:.0f} ns outside, {1e9 / inside:.0f} ns in a share: {more:+.0f} ns")
sys.exit(more > 100)
PY

# Twelve cells of ten seconds, against the driver's own utilisation samples.
if "$aliquot" bench shares --json >"$work/cells" || [ $? = 2 ]; then
  python3 - "$work/cells" <<'PY' || failed=1
import json, sys
cells = json.load(open(sys.argv[1]))
for cell in cells["cells"]:
    print(f"gpu: {cell['cell']}: error {cell['mean_error_points']:.2f}, busy {cell['busy_percent']:.1f} %"
          + ("" if cell["valid"] else ", not valid: this host wakes sleepers too late"))
bad = cells["valid"] and (cells["mean_error_points"] > 1 or cells["worst_error_points"] > 3)
print(f"gpu: mean error {cells['mean_error_points']:.2f}, worst {cells['worst_error_points']:.2f} points")
sys.exit(bad)
PY
else
  failed=1
fi

if python3 -c 'import torch' 2>/dev/null; then
  "$aliquot" run --name other --gpu 0 --memory 4GiB --cores 70 -- python3 "$here/gpu_torch.py" 20 >"$work/other" &
  "$aliquot" run --name own --gpu 0 --memory 4GiB --cores 30 -- python3 "$here/gpu_torch.py" 20 >"$work/own" || failed=1
  wait
  sed 's/^/gpu: torch, 30 %: /' "$work/own"
  python3 - "$work/own" "$work/other" <<'PY' || failed=1
import json, sys
own, other = (json.load(open(path)) for path in sys.argv[1:])
share = 100 * own["steps"] / (own["steps"] + other["steps"])
print(f"gpu: torch: {share:.1f} % of the steps for 30 % of the time")
sys.exit(not (abs(share - 30) <= 2 and own["total"] == 4 << 30 and "out of memory" in own["refusal"]))
PY
else
  note "torch left out: no PyTorch here (pip install torch)"
fi
note "$([ $failed = 0 ] && echo passed || echo FAILED) in $((SECONDS - began)) s"
exit $failed
