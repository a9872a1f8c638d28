#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine a100x4
view=$("$aliquot" run -q --gpu 1 --memory 4GiB -- $driver view)
same "GPUs seen" "gpus 1" "$(sed -n 1p <<<"$view")"
same "total" "total $((4 * GiB))" "$(sed -n 3p <<<"$view")"
# The context is charged to the share, and free tells what is left.
free=$(sed -n 's/^free //p' <<<"$view")
[ "$free" -lt $((4 * GiB)) ] && [ "$free" -gt $((3 * GiB)) ] || fail "free is $free"
same "by address" "$view" "$("$aliquot" run -q --gpu 1 --memory 4GiB -- $driver by_address)"
same "NVML's list" 1 "$("$aliquot" run -q --gpus 1 --memory 4GiB -- "$aliquot" smi -L | wc -l)"
same "NVML's total" 4096 "$("$aliquot" run -q --gpu 1 --memory 4GiB -- \
  "$aliquot" smi --query-gpu=memory.total --format=csv,noheader,nounits)"
same "two GPUs, each with its own limit" "1536" "$("$aliquot" run -q --gpu 0:4GiB,2:1.5GiB -- \
  "$aliquot" smi --query-gpu=memory.total --format=csv,noheader,nounits | sed -n 2p)"
