#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
# What a policy promises, by the device's own account, and changed while the programs run.
slow_machine
policy() { "$aliquot" gpu set 0 --sim m "$@" >/dev/null; sleep 2; }  # windows of the old one end
load one --weight 1
load three --weight 3
within 20 running one
within 20 running three

policy --policy fair --max-inst 4
read -r one three < <(use 10 one three)
near "a unit of four under fair" 25 "$one" 3
near "a unit of four under fair, whatever its weight" 25 "$three" 3  # and two units stay idle

policy --policy weighted --max-inst 20
read -r one three < <(parts 8 one three)
near "weight 1 beside 3" 25 "$one" 2.5

policy --policy fixed --max-inst 10
read -r one three < <(use 8 one three)
near "one unit of ten under fixed" 10 "$one" 2
near "three units of ten under fixed" 30 "$three" 2.5

"$aliquot" share set three --class online >/dev/null
policy --policy burst --prio-ratio 80
read -r one three < <(parts 12 one three)
near "online with a priority ratio" 80 "$three" 3
[ "$(lease one gpus.0.compute.state)" != "paused by online" ] || fail "an offline lease is paused although it has a fifth"
