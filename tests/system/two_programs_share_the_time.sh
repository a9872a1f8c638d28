#!/usr/bin/env bash
# Thirty and seventy percent, changed while both run; what they had is the device's word.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
slow_machine
load a --cores 30
KERNEL=2000 load b --cores 70
within 10 running a
within 10 running b
read -r a b < <(parts 7 a b)
near "share of a" 30 "$a" 3
near "share of b" 70 "$b" 3
"$aliquot" share set b --cores 30 >/dev/null
"$aliquot" share set a --cores 70 >/dev/null
same "cores of a" 70.0 "$(lease a gpus.0.compute.cores_percent)"
sleep 1  # what was queued has run
read -r a b < <(parts 7 a b)
near "share of a after the change" 70 "$a" 3
near "share of b after the change" 30 "$b" 3
"$aliquot" share set a --cores 71 2>"$work/err" && fail "101 % were promised"
grep -q '70% are free' "$work/err" || fail "it does not say what is free: $(cat "$work/err")"
for name in a b; do [ ! -s "$work/$name.err" ] || fail "$name met an error: $(cat "$work/$name.err")"; done
