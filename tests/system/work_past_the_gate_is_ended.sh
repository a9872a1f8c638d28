#!/usr/bin/env bash
# A program that takes the real driver by its path has no window: found by the driver's samples.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
machine
"$aliquot" gpu set 0 --on-bypass end >/dev/null
load honest --cores 50
within 10 running honest
same "an honest program" False "$(lease honest gpus.0.compute.offender)"
"$aliquot" run -q --cooperative --name cheat --gpu 0:1GiB --cores 10 -- \
  env -u LD_PRELOAD -u ALIQUOT_LEASE "$aliquot" burn --sim m --kernel-us 500 --seconds 60 \
  >/dev/null 2>&1 &
cheat=$!
status=0
timeout 8 tail --pid=$cheat -f /dev/null || fail "a program that passes the gate by still runs"
wait $cheat || status=$?
[ "$status" != 0 ] || fail "it ended well"
grep -q 'lease cheat: work on GPU 0 does not come through its gate' "$ALIQUOT_STATE_DIR/broker.log" ||
  fail "the log does not say why"
same "the honest program" False "$(lease honest gpus.0.compute.offender)"
