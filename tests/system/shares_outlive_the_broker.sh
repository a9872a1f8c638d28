#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
slow_machine
"$aliquot" gpu set 0 --policy burst --max-inst 8 --on-bypass ban >/dev/null
SECONDS_LONG=30
load a --cores 25
load b --cores 75
within 10 running a
within 10 running b
for _ in 1 2 3; do
  kill -KILL "$(broker)"
  sleep 1
done
read -r a b < <(parts 7 a b)
near "share of a after three brokers" 25 "$a" 3
near "share of b after three brokers" 75 "$b" 3
same "what was set for the GPU" 8 "$("$aliquot" gpu get 0 --json | field gpus.0.max_inst)"
wait $(jobs -p)
for name in a b; do
  [ ! -s "$work/$name.err" ] || fail "$name met an error: $(cat "$work/$name.err")"
  [ -s "$work/$name.json" ] || fail "$name did not end well"
done
