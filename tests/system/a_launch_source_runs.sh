#!/usr/bin/env bash
# A <<<>>> source, compiled by clang without the CUDA tool kit and linked with the small runtime, bare
# and in a share.
. "$(dirname "$0")/harness.sh"
command -v clang++-19 >/dev/null || { echo "skipped: no clang++-19"; exit 77; }
machine
examples=$here/../../examples/launch
"$examples/build.sh" "$BUILD" "$examples/add.cu" "$work/add"
wanted="65536 sums as expected, after a launch and three of a graph"
same "bare" "$wanted" "$(LD_LIBRARY_PATH=$ALIQUOT_STATE_DIR/sim/m/lib "$work/add")"
same "in a share" "$wanted" "$("$aliquot" run -q --gpu 1 --memory 1GiB -- "$work/add")"
if "$work/add" 2>"$work/errors"; then fail "it ran without a driver"; fi
grep -q 'aliquot runtime: no driver' "$work/errors" || fail "no reason: $(cat "$work/errors")"
