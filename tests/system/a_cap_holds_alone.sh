#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
slow_machine
KERNEL=50 load a --cores 20 --cap
within 10 running a
sleep 5  # what a start may catch up with
read -r a < <(use 10 a)
near "a capped share of an idle GPU" 20 "$a" 1
# Without the cap the gate costs a tenant that is alone half a percent of its kernels at most: outside a
# share it could have no more than all of the device's time.
"$aliquot" share set a --no-cap >/dev/null
sleep 1
read -r a < <(use 5 a)
near "without the cap" 100 "$a" 0.5
