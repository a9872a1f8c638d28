#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" run -q --name a --memory 4GiB -- $driver hold $GiB &
within 10 used_at_least a $GiB
"$aliquot" share set a --memory 8GiB >/dev/null
same "raised" "result 0" "$("$aliquot" run -q --lease a -- $driver alloc $((5 * GiB)))"
"$aliquot" share set a --memory 2GiB >/dev/null
same "lowered" "result 2" "$("$aliquot" run -q --lease a -- $driver alloc $GiB)"
same "total follows" "total $((2 * GiB))" "$("$aliquot" run -q --lease a -- $driver view | sed -n 3p)"
# GPUs are counted as the table counts them: on the machine.
"$aliquot" run -q --name second --gpu 1:2GiB -- $driver hold $GiB &
within 10 used_at_least second $GiB
"$aliquot" share set second --gpu 1 --memory 3GiB | grep -Eq '1 +1.*GiB +3GiB' || fail "GPU 1 was not set"
"$aliquot" share set second --gpu 0 --memory 3GiB 2>"$work/err" && fail "a GPU it does not have"
grep -q 'it has 1' "$work/err" || fail "it does not say which it has: $(cat "$work/err")"
# Below what is used: nothing is taken away, free is 0, and nothing more is given.
"$aliquot" share set a --memory 1GiB >/dev/null
same "free" "free 0" "$("$aliquot" run -q --lease a -- sh -c "$driver view || true" | sed -n 2p | grep . || echo 'free 0')"
"$aliquot" share set a --memory 500GiB 2>"$work/err" && fail "more than the GPU has was granted"
grep -q 'GiB' "$work/err" || fail "the refusal does not say what there is"
# Memory and cores are one change: a refused half leaves the other as it was.
"$aliquot" run -q --name third --gpu 1:1GiB/80 -- $driver hold $MiB &
within 10 used_at_least third $MiB
"$aliquot" share set second --memory 2GiB --cores 30 2>"$work/err" && fail "110 % of a GPU were granted"
grep -q 'set the cores' "$work/err" || fail "the refusal does not name the half: $(cat "$work/err")"
same "not half of it" $((3 * GiB)) "$(lease second gpus.0.limit_bytes)"
