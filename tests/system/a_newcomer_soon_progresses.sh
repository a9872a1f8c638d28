#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
# Beside a program that always has work queued: a newcomer's first launch waits no longer than 100 ms of
# the machine's time (a second here), and then it has its share.
slow_machine
load a --cores 70
within 10 running a
for round in 1 2 3; do
  load "b$round" --cores 30
  launched() { [ "$(lease "b$round" gpus.0.compute.launches 2>/dev/null || echo 0)" -gt 0 ]; }
  within 20 launched
  waited=$(lease "b$round" gpus.0.compute.waiting_ns)
  [ "$waited" -lt 1000000000 ] || fail "newcomer $round waited $waited ns for its first launch"
  if [ "$round" = 3 ]; then break; fi
  kill -TERM %%
  within 10 gone "b$round"
done
sleep 1
read -r a b < <(parts 7 a b3)
near "share of a" 70 "$a" 3
near "share of the newcomer" 30 "$b" 3
