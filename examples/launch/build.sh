#!/usr/bin/env bash
# usage: build.sh BUILD_DIR SOURCE.cu PROGRAM -- compiles a <<<>>> source with clang alone, without
# the CUDA tool kit: device code to PTX, which the host's object carries and the driver compiles.
set -euo pipefail
lib=$(cd "${1:?usage: build.sh BUILD_DIR SOURCE.cu PROGRAM}/lib/aliquot" && pwd) source=$2 program=$3
clang=${CLANG:-clang++-19}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cuda=(-x cuda --cuda-gpu-arch="${ARCH:-sm_50}" -nocudainc -nocudalib -I"$lib/include" -std=c++17 -O2
  -Xclang -target-sdk-version=12.0 -Wno-unknown-cuda-version)
"$clang" "${cuda[@]}" --cuda-device-only -S -o "$scratch/device.ptx" "$source"
printf '\0' >>"$scratch/device.ptx"  # the driver reads text up to a zero
"$clang" "${cuda[@]}" --cuda-host-only -Xclang -fcuda-include-gpubinary \
  -Xclang "$scratch/device.ptx" -c -o "$scratch/host.o" "$source"
"$clang" -o "$program" "$scratch/host.o" "$lib/libaliquot_runtime.a" -ldl -lpthread
