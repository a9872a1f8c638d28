#!/usr/bin/env bash
# nvidia-ml-py, gpustat and cuda-bindings inside a share (make test installs them).
. "$(dirname "$0")/harness.sh"
venv=$here/../../build/clients/venv/bin
[ -x "$venv/gpustat" ] || { echo "skipped: the Python clients are not installed (scripts/setup.sh test)"; exit 77; }
machine
in_share() { "$aliquot" run -q --gpu 1 --memory 4GiB -- "$@"; }
in_share "$venv/python" "$here/../../scripts/demo_client.py" >"$work/client"
said() { sed -n "s/^$1: //p" "$work/client"; }
same "NVML's list" 1 "$(said 'GPUs listed by NVML')"
same "the CUDA driver's" 1 "$(said 'GPUs counted by the CUDA driver')"
same "NVML's total" $((4 * GiB)) "$(said 'total by NVML')"
same "cuMemGetInfo's total" $((4 * GiB)) "$(said 'total by cuMemGetInfo')"
same "all of it" CUDA_ERROR_OUT_OF_MEMORY "$(said 'an allocation of all of it')"
same "gpustat" "1 4096" "$(in_share "$venv/gpustat" --json | python3 -c \
  'import json, sys; g = json.load(sys.stdin)["gpus"]; print(len(g), g[0]["memory.total"])')"
# With a program in the share gpustat shows it, and nothing of another lease on the same GPU.
"$aliquot" run -q --name other --gpu 1 --memory 4GiB -- $driver hold $GiB &
within 10 used_at_least other $GiB
same "used in a fresh share, and processes" "0 0" "$(in_share "$venv/gpustat" --json | python3 -c \
  'import json, sys; g = json.load(sys.stdin)["gpus"][0]; print(g["memory.used"], len(g["processes"]))')"
