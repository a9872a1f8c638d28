#!/usr/bin/env bash
# A program that takes the real driver by its path has no window: found by the driver's samples, by
# the user's own broker and by the machine's daemon.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
is_ended() {  # LOG of the broker
  local honest cheat status=0
  "$aliquot" gpu set 0 --on-bypass end >/dev/null
  load honest --cores 50
  honest=$!
  within 10 running honest
  same "an honest program" False "$(lease honest gpus.0.compute.offender)"
  "$aliquot" run -q --cooperative --name cheat --gpu 0:1GiB --cores 10 -- \
    env -u LD_PRELOAD -u ALIQUOT_LEASE "$aliquot" burn --sim m --kernel-us 500 --seconds 60 \
    >/dev/null 2>&1 &
  cheat=$!
  timeout 8 tail --pid=$cheat -f /dev/null || fail "a program that passes the gate by still runs"
  wait $cheat || status=$?
  [ "$status" != 0 ] || fail "it ended well"
  grep -q 'lease cheat: work on GPU 0 does not come through its gate' "$1" ||
    fail "the log does not say why"
  same "the honest program" False "$(lease honest gpus.0.compute.offender)"
  kill -TERM $honest && wait $honest || true
}
machine
is_ended "$ALIQUOT_STATE_DIR/broker.log"
export ALIQUOT_DAEMON_DIR=$work/daemon
"$BUILD/bin/aliquotd" --sim m --kubelet no --state-directory "$ALIQUOT_DAEMON_DIR" --cache-directory \
  "$work/cache" 2>"$work/aliquotd.log" &
within 10 test -S "$ALIQUOT_DAEMON_DIR/broker.sock"
within 10 "$aliquot" ps >/dev/null
is_ended "$work/aliquotd.log"
