#!/usr/bin/env bash
# `sim root`: its nvidia-smi asks its own machine, wherever the root lies and whatever else runs.
. "$(dirname "$0")/harness.sh"
machine a100x2
"$aliquot" sim up --node t4x1 --name other >/dev/null
root=$work/root
"$aliquot" sim root m "$root" >"$work/said" 2>"$work/errors"
smi=$root/usr/bin/nvidia-smi
same "GPUs" 2 "$("$smi" -L | grep -c 'NVIDIA A100-SXM4-80GB')"
same "driver" 580.65.06 "$("$smi" --query-gpu=driver_version --format=csv,noheader | head -1)"
"$smi" | grep -q 'simulated machine m' || fail "the table does not say that it is simulated"
same "its libcuda" "gpus 2" \
  "$(LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu $driver view | head -1)"
if [ "$(id -u)" = 0 ] && [ ! -s "$work/errors" ]; then
  same "device nodes" 5 "$(find "$root/dev" -type c | wc -l)"
fi
mkdir "$work/full" && touch "$work/full/mine"
if "$aliquot" sim root m "$work/full" 2>"$work/refused"; then fail "laid out over other files"; fi
grep -q 'it holds other files' "$work/refused" || fail "no reason: $(cat "$work/refused")"
"$aliquot" sim down m
if "$smi" -L >/dev/null 2>"$work/gone"; then fail "a machine that is gone still answers"; fi
