#!/usr/bin/env bash
# A program that takes the real driver by its path has no window: found by the driver's samples within
# two of their periods and a second of the machine's time, by the user's own broker and by the machine's
# daemon, and ended or stopped as configured; then its neighbour has all of the GPU again.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
soon=5  # (2/6 + 1) s at a quarter of the speed, and no more
cheat() {  # LEASE; its process's number is in $work/pid
  rm -f "$work/pid"
  "$aliquot" run -q --cooperative --name "$1" --gpu 0:1GiB --cores 10 -- \
    sh -c 'echo $$ >"$1/pid.new"; mv "$1/pid.new" "$1/pid"; shift; exec env -u LD_PRELOAD -u ALIQUOT_LEASE "$@"' - \
    "$work" "$aliquot" burn --sim m --kernel-us 500 --seconds 60 >/dev/null 2>&1 &
  within 10 [ -s "$work/pid" ]
}
stopped() { grep -q '^State:.*stopped' "/proc/$(cat "$work/pid")/status"; }
alone() {  # WHEN
  local use
  read -r use < <(use 4 honest)
  near "the honest program $1" 100 "$use" 1
  same "the honest program $1" False "$(lease honest gpus.0.compute.offender)"
}
is_ended() {  # LOG of the broker
  local honest status=0
  "$aliquot" gpu set 0 --on-bypass end >/dev/null
  load honest --cores 50
  honest=$!
  within 10 running honest
  same "an honest program" False "$(lease honest gpus.0.compute.offender)"
  cheat ended
  within $soon gone ended
  wait %% || status=$?
  [ "$status" != 0 ] || fail "it ended well"
  grep -q 'lease ended: work on GPU 0 does not come through its gate' "$1" ||
    fail "the log does not say why"
  alone "when the other was ended"
  kill -TERM $honest && wait $honest || true
}
slow_machine 0.25
is_ended "$ALIQUOT_STATE_DIR/broker.log"
export ALIQUOT_DAEMON_DIR=$work/daemon
"$BUILD/bin/aliquotd" --sim m --kubelet no --state-directory "$ALIQUOT_DAEMON_DIR" --cache-directory \
  "$work/cache" 2>"$work/aliquotd.log" &
within 10 test -S "$ALIQUOT_DAEMON_DIR/broker.sock"
within 10 "$aliquot" ps >/dev/null
is_ended "$work/aliquotd.log"

"$aliquot" gpu set 0 --on-bypass stop >/dev/null
load honest --cores 50
within 10 running honest
cheat stopped
within $soon stopped
status=0
(alone "when the other was stopped") || status=$?
kill -KILL "$(cat "$work/pid")"  # who is stopped would not end
exit $status
