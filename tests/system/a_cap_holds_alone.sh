#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
slow_machine
load a --cores 20 --cap
within 10 running a
# After what a start may catch up with, and over ten of the driver's periods: seven seconds hold
# four, too few to see a cap by.
sleep 5
read -r a < <(use 17 a)
# Never more; on a busy host it may come too late for some of it.
near "a capped share of an idle GPU" 18 "$a" 3
"$aliquot" share set a --no-cap >/dev/null
sleep 2
read -r a < <(use 5 a)
near "without the cap" 100 "$a" 10
