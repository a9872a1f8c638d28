#!/usr/bin/env bash
# Kernels that leave room for another's: in turns each program has half its pace, as clients of MPS all of it.
. "$(dirname "$0")/harness.sh"
burn() { "$aliquot" burn --sim m --kernel-us 500 --seconds "$1" >"$work/$2" 2>"$work/$2.err"; }
kernels() { field kernels <"$work/$1"; }
pace() {  # percent of a program alone that each of two has
  "$aliquot" sim up --node a100x1 --name m --speed 0.1 "$@" >/dev/null
  burn 2 alone
  burn 2 a &
  burn 2 b
  wait
  echo $((100 * $(kernels a) / $(kernels alone))) $((100 * $(kernels b) / $(kernels alone)))
}
read -r a b < <(pace)
[ "$a" -lt 75 ] && [ "$b" -lt 75 ] || fail "without MPS they should take turns: $a % and $b % of one alone"
"$aliquot" sim down m >/dev/null
read -r a b < <(pace --mps)
[ "$a" -gt 75 ] && [ "$b" -gt 75 ] || fail "as clients of MPS they should not: $a % and $b % of one alone"

# What a user sees of it, and that a fault is everybody's.
burn 600 a &
first=$!
burn 600 b &
second=$!
both() { [ "$("$aliquot" smi --sim m | grep -c ' M+C ')" = 2 ]; }
within 20 both
"$aliquot" sim fault m --gpu 0 --xid 31 >/dev/null
for pid in $first $second; do wait "$pid" && fail "a client outlived the fault"; done
grep -q . "$work/a.err" && grep -q . "$work/b.err" || fail "no word of the fault"
"$aliquot" sim fault m --gpu 0 --lift >/dev/null
burn 0.5 after || fail "no client works after the fault: $(cat "$work/after.err")"
