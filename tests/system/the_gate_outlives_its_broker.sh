#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# Three programs compete for a GPU while their broker is killed again and again: all go on, none sees
# an error, none is refused; nor does one that has closed its descriptors.
machine
for one in a:20 b:60; do
  "$aliquot" run -q --name "${one%:*}" --gpu 0 --memory 2GiB --cores "${one#*:}" -- \
    "$aliquot" burn --kernels 500us --depth 64 --seconds 300 >/dev/null &
done
"$aliquot" run -q --name c --gpu 0 --memory 2GiB --cores 20 -- $driver launch_without_descriptors 300 >"$work/c" &
launches() { lease "$1" gpus.0.compute.launches 2>/dev/null || echo 0; }
more_than() { [ "$(launches "$1")" -gt "$2" ]; }
within 20 more_than a 50
within 20 more_than b 50
within 20 grep -q closed "$work/c"
for _ in 1 2; do
  before_a=$(launches a) before_b=$(launches b) before_c=$(launches c)
  kill -KILL "$(broker)"
  within 20 more_than a $((before_a + 100))
  within 20 more_than b $((before_b + 100))
  within 20 more_than c $((before_c + 50))
done
for name in a b c; do same "refused to $name" 0 "$(lease $name gpus.0.compute.gate_refusals)"; done
[ "$(launches b)" -gt "$(launches a)" ] || fail "b, with 60 %, had no more than a"
kill -0 %1 && kill -0 %2 && kill -0 %3 || fail "one of them has ended"
