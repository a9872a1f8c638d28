#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# While NVML never answers, which the broker asks about memory and processes, two programs go on
# taking turns, shares can be changed, and further programs begin.
machine
for one in a:30 b:70; do
  "$aliquot" run -q --name "${one%:*}" --gpu 0 --memory 2GiB --cores "${one#*:}" -- \
    "$aliquot" burn --kernels 500us --depth 64 --seconds 60 >"$work/${one%:*}.out" 2>"$work/${one%:*}.err" &
done
slot_launches() { lease "$1" gpus.0.compute.launches 2>/dev/null || echo 0; }
running() { [ "$(slot_launches a)" -gt 50 ] && [ "$(slot_launches b)" -gt 50 ]; }
within 20 running
before_a=$(slot_launches a) before_b=$(slot_launches b)
"$aliquot" sim fault m --gpu 0 --nvml-hang 3600000 >/dev/null
sleep 1  # it is asked meanwhile
began=$(date +%s)
"$aliquot" share set a --cores 25 >/dev/null || fail "share set"
"$aliquot" run -q --lease b -- "$aliquot" burn --kernels 500us --depth 4 --seconds 1 >"$work/late" || fail "a program that joins"
[ $(($(date +%s) - began)) -lt 20 ] || fail "the broker waited for NVML"
more() { [ "$(slot_launches a)" -gt $((before_a + 1500)) ] && [ "$(slot_launches b)" -gt $((before_b + 3500)) ]; }
within 12 more
same "refused" "0 0" "$(lease a gpus.0.compute.gate_refusals) $(lease b gpus.0.compute.gate_refusals)"
for name in a b; do [ ! -s "$work/$name.err" ] || fail "$name met an error: $(cat "$work/$name.err")"; done
