#!/usr/bin/env bash
# Faults that an operator orders on the command line: what NVML and the driver show, bare and in a
# share, and that they are gone when lifted.
. "$(dirname "$0")/harness.sh"
machine
libraries=$ALIQUOT_STATE_DIR/sim/m/lib
fault() { "$aliquot" sim fault m "$@" >/dev/null; }
bare() { LD_LIBRARY_PATH=$libraries $driver "$@"; }
share() { "$aliquot" run -q --gpu 1 --memory 1GiB -- $driver "$@"; }

fault --fail cuMemAlloc_v2:2=719
same "the second call, bare" $'result 0\nresult 719\nresult 0' "$(bare alloc $MiB $MiB $MiB)"
same "the second call, in a share" $'result 0\nresult 719\nresult 0' "$(share alloc $MiB $MiB $MiB)"
fault --lift
same "when lifted" $'result 0\nresult 0' "$(bare alloc $MiB $MiB)"

# Counters stay; the driver's calls go on.
same "a sound GPU's errors" "corrected 0" "$(bare health 1 | sed -n 1p)"
fault --gpu 1 --ecc-single 3
same "corrected errors" "corrected 3" "$(bare health 1 | sed -n 1p)"
same "of the share's GPU" "corrected 3" "$(share health 0 | sed -n 1p)"
same "of the other GPU" "corrected 0" "$(bare health 0 | sed -n 1p)"
same "with corrected errors" "result 0" "$(share alloc $MiB)"

cool=$(bare health 1 | sed -n 2p)
fault --gpu 1 --temperature 93
same "a hot chip" "celsius 93" "$(bare health 1 | sed -n 2p)"
same "a hot chip by smi" 93 \
  "$("$aliquot" smi --query-gpu=temperature.gpu --format=csv,noheader | sed -n 2p)"
same "while it is hot" "result 0" "$(bare alloc $MiB)"
fault --gpu 1 --lift
same "when it has cooled" "$cool" "$(bare health 1 | sed -n 2p)"

# The driver asks the process's dlsym for its own functions, and finds the share's.
limit() {
  for way in alloc alloc_by_address; do
    same "$1: $way within the limit" "result 0" "$(timeout 20 "$aliquot" run -q --memory 1GiB -- \
      $driver $way $((GiB / 2)))"
    same "$1: $way past it" "result 2" "$(timeout 20 "$aliquot" run -q --memory 1GiB -- \
      $driver $way $((2 * GiB)))"
  done
}
limit "a driver that asks itself"
fault --dlsym
limit "a driver that asks dlsym"
same "bare" "result 0" "$(bare alloc_by_address $((2 * GiB)))"
fault --lift
limit "when lifted"
