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

# A lifted remap leaves its row, a link its errors: as after a reset of the GPU.
rows() { bare wear "$1" | sed -n 1p; }
link_errors() { bare wear "$1" | sed -n "$((2 + $2))p"; }  # GPU LINK
fault --gpu 1 --row-remap pending
same "a row that waits" "rows 0 1 1 0" "$(rows 1)"
same "in a share" "rows 0 1 1 0" "$(share wear 0 | sed -n 1p)"
fault --gpu 1 --row-remap failed
same "a row that could not be replaced" "rows 0 8 1 1" "$(rows 1)"
same "rows of the other GPU" "rows 0 0 0 0" "$(rows 0)"
fault --gpu 1 --link-errors 5
fault --gpu 1 --link-errors 3:40
fault --gpu 1 --link-errors 3:2
same "errors of the first link" "link 0 errors 5" "$(link_errors 1 0)"
same "errors of the fourth" "link 3 errors 42" "$(link_errors 1 3)"
same "errors of the other GPU's" "link 3 errors 0" "$(link_errors 0 3)"
same "with bad links and rows" "result 0" "$(bare alloc $MiB)"
fault --gpu 1 --lift
same "rows when lifted" "rows 0 8 0 0" "$(rows 1)"
same "errors when lifted" "link 3 errors 42" "$(link_errors 1 3)"
refused() {  # STATUS REASON ARGUMENT...
  local expected=$1 reason=$2 status=0
  shift 2
  "$aliquot" sim fault "$@" >/dev/null 2>"$work/err" || status=$?
  same "status of: sim fault $*" "$expected" "$status"
  grep -qF -- "$reason" "$work/err" || fail "sim fault $*: $(cat "$work/err")"
}
refused 2 "LINK:COUNT: 1:x" m --gpu 1 --link-errors 1:x
refused 2 --row-remap m --gpu 1 --row-remap soon
refused 1 "no such NVLink" m --gpu 1 --link-errors 12:1
"$aliquot" sim up --node t4x1 --name old >/dev/null
refused 1 "no spare rows" old --gpu 0 --row-remap failed
refused 1 "no such NVLink" old --gpu 0 --link-errors 1
"$aliquot" sim down old >/dev/null

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
