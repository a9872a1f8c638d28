#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# Two programs compete for a GPU while their broker is killed again and again: both go on, none sees
# an error, none is refused.
machine
broker() { pgrep -f "$aliquot broker" | head -1; }
for one in a:30 b:70; do
  "$aliquot" run -q --name "${one%:*}" --gpu 0 --memory 2GiB --cores "${one#*:}" -- \
    "$aliquot" burn --kernels 500us --depth 64 --seconds 300 >/dev/null &
done
launches() { lease "$1" gpus.0.compute.launches 2>/dev/null || echo 0; }
more_than() { [ "$(launches "$1")" -gt "$2" ]; }
within 20 more_than a 50
within 20 more_than b 50
for _ in 1 2; do
  before_a=$(launches a) before_b=$(launches b)
  kill -KILL "$(broker)"
  within 20 more_than a $((before_a + 100))
  within 20 more_than b $((before_b + 100))
done
same "refused" "0 0" "$(lease a gpus.0.compute.gate_refusals) $(lease b gpus.0.compute.gate_refusals)"
[ "$(launches b)" -gt "$(launches a)" ] || fail "b, with 70 %, had no more than a"
kill -0 %1 && kill -0 %2 || fail "one of them has ended"
