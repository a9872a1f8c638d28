#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
# Cooperative mode: a program that takes the real driver by its path is not held, but named.
"$aliquot" run --cooperative --name a --memory 1GiB -- \
  env -u LD_PRELOAD TEST_LIBCUDA="$ALIQUOT_STATE_DIR/sim/m/lib/libcuda.so.1" \
  $driver hold $((2 * GiB)) >"$work/out" 2>"$work/err" &
reported() { grep -q 'without having attached' "$work/err"; }
holds() { grep -q 'result 0' "$work/out"; }
within 10 holds
within 2 reported
within 2 sh -c "'$aliquot' ps --json | grep -q '\"lease\": \"a\"'"
# One that keeps to the library is held there too.
same "cooperative" "result 2" "$("$aliquot" run -q --cooperative --memory 1GiB -- $driver alloc $((2 * GiB)))"
