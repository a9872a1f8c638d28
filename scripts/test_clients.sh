#!/usr/bin/env bash
# usage: test_clients.sh BUILD_DIR [FAMILY...] -- programs that nobody here wrote, each on simulated
# drivers of the versions that its authors support, with what they print checked. Downloads about
# 2 GB the first time, into build/clients. A family whose tool chain is not here is skipped with a
# word; packages that cannot be had are a failure, and so is it when nothing ran. What every family
# is, and why versions are left out: docs/clients.md.
set -euo pipefail
bin=$(cd "${1:?usage: test_clients.sh BUILD_DIR [FAMILY...]}" && pwd)/bin
shift
here=$(cd "$(dirname "$0")" && pwd)
checks=$here/../tests/clients
clients=$here/../build/clients
families=("$@")
failed=0 ran=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export TRITON_CACHE_DIR=$clients/triton-cache TRITON_PTXAS_PATH=$checks/ptxas_pass.py
export TRITON_DEFAULT_FP_FUSION=1

wanted() {  # FAMILY
  [ ${#families[@]} = 0 ] && return 0
  for family in "${families[@]}"; do [ "$family" = "$1" ] && return 0; done
  return 1
}
venv() {  # NAME: made if need be; its directory on stdout
  if [ "$1" = venv ]; then
    "$here/client_venv.sh" "$here/requirements.txt" "$clients/venv"
  elif [ "$1" = pycuda ]; then
    "$here/pycuda_venv.sh" "$here/requirements-pycuda.txt" "$clients/pycuda" "$bin/../lib/aliquot/sim"
  else
    "$here/client_venv.sh" "$here/requirements-$1.txt" "$clients/$1"
  fi && echo "$clients/$1"
}
note() {  # FAMILY VERSION WHERE STATUS: counts, and prints the check's own last line
  ran=$((ran + 1))
  local word=ok
  [ "$4" = 0 ] || { word=FAILED; failed=$((failed + 1)); }
  printf '%-8s %-14s %-5s %-6s %s\n' "$word" "$1" "$2" "$3" "$(grep . "$log" | tail -1)"
  [ "$4" = 0 ] || sed 's/^/    /' "$log" | tail -25
}
lacking() {  # FAMILY WHY: could be here, and is not
  failed=$((failed + 1))
  echo "FAILED   $1: $2"
}
run() {  # FAMILY VENV "VERSIONS" "WHERES" SCRIPT [ARGUMENT...]
  local family=$1 version where directory
  wanted "$family" || return 0
  if ! directory=$(venv "$2"); then
    lacking "$family" "its packages could not be installed"
    return 0
  fi
  for where in $4; do
    for version in $3; do
      [ "$where" = bare ] || [ "$version" = 13.0 ] || continue
      local status=0
      "$checks/run_client.sh" "$where" "$bin" "$directory" "a100x8@$version" "$checks/$5" \
        "${@:6}" >"$log" 2>&1 || status=$?
      note "$family" "$version" "$where" "$status"
    done
  done
}

has_tool() {  # FAMILY TOOL
  command -v "$2" >/dev/null || { echo "skipped  $1: there is no $2 here"; return 1; }
}
go_install() { GOBIN=$clients/bin go install "$1"; }
go_build() { cd "$checks/go" && go build -o "$clients/bin/go-nvml" .; }
cargo_build() {
  CARGO_TARGET_DIR=$clients/rust cargo build --manifest-path "$checks/rust/Cargo.toml" &&
    mkdir -p "$clients/bin" && cp "$clients/rust/debug/clients" "$clients/bin/cudarc"
}
run_built() {  # FAMILY TOOL PROGRAM BUILD-FUNCTION "VERSIONS" "WHERES" SCRIPT [ARGUMENT...]
  local family=$1 program=$clients/bin/$3
  wanted "$family" || return 0
  if [ ! -x "$program" ]; then
    has_tool "$family" "$2" || return 0
    $4 >"$log" 2>&1 || { lacking "$family" "$(tail -3 "$log")"; return 0; }
  fi
  run "$family" venv "$5" "$6" "$7" "$program" "${@:8}"
}

every="11.8 12.4 12.9 13.0"
from_12="12.4 12.9 13.0"
both="bare share"
run names venv "$every" "$both" versions_check.py "$bin/aliquot"
run nvidia-ml-py venv "11.8 12.4 12.9" bare nvml_sweep.py
run nvidia-ml-py venv 13.0 bare nvml_sweep.py "$checks/nvml_sweep_a100x8.json"
run nvidia-ml-py venv 13.0 share nvml_sweep.py "$checks/nvml_sweep_share.json"
run gpustat venv "$every" "$both" gpustat_check.py
run nvitop venv "$every" "$both" nvitop_check.py
run tinygrad venv "$every" "$both" tinygrad_check.py
run cuda-bindings venv "$from_12" "$both" cuda_bindings_check.py
run cuda-core venv "$from_12" "$both" cuda_core_check.py
run cuda-12.9 cuda12.9 "$from_12" "$both" cuda_bindings_check.py
run cuda-11.8 cuda11.8 "$every" "$both" cuda_bindings_check.py
run triton jit "$every" "$both" triton_check.py
run taichi jit "$every" "$both" taichi_check.py
run py3nvml jit "$every" bare py3nvml_check.py
! wanted pycuda || ! has_tool pycuda c++ ||
  run pycuda pycuda "12.9 13.0" "$both" pycuda_check.py
run_built go-nvml go go-nvml go_build "$every" "$both" go_check.py
run_built nvidia-ctk go nvidia-ctk \
  "go_install github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk@v1.20.2" \
  "$every" bare cdi_check.py "$bin/aliquot"
run_built cudarc cargo cudarc cargo_build "$every" "$both" rust_check.py
run numba numba 13.0 bare numba_suite.py "$checks/numba_suite.json"

echo "clients (simulated): $ran runs, $failed failed"
[ "$failed" = 0 ] && [ "$ran" -gt 0 ]
