#!/usr/bin/env bash
# usage: pycuda_venv.sh LIST VENV LIBCUDA_DIR -- as client_venv.sh, for the one client that is built
# here: against the headers that the list names beside it, and linked with libcuda.so of the directory.
set -euo pipefail
list=$1 venv=$2 libcuda=$3
cmp -s "$list" "$venv/requirements.txt" && exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
grep -v '^pycuda' "$list" >"$scratch/beside.txt"
"$(dirname "$0")/client_venv.sh" "$scratch/beside.txt" "$venv"
cp "$libcuda/libcuda.so.1" "$scratch/libcuda.so"
echo 'CUDA_ENABLE_CURAND = False' >"$scratch/.aksetup-defaults.py"
env HOME="$scratch" CPATH="$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13/include)" \
  LIBRARY_PATH="$scratch" CFLAGS='-O0 -g0 -w' CXXFLAGS='-O0 -g0 -w' \
  "$venv/bin/pip" install -q --disable-pip-version-check --no-binary pycuda \
  "$(grep '^pycuda' "$list")" >"$scratch/log" 2>&1 ||
  { grep -m3 'error' "$scratch/log" >&2; exit 1; }
cp "$list" "$venv/requirements.txt"
