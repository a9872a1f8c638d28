#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine a100x1
"$aliquot" run -q --name big --memory 60GiB -- $driver hold $GiB 12 &
within 20 used_at_least big $GiB
"$aliquot" run -q --memory 40GiB -- true 2>"$work/err" && fail "more than there is was granted"
grep -q 'GiB' "$work/err" || fail "the refusal does not name what is free: $(cat "$work/err")"
"$aliquot" run -q --gpu 3 --memory 1GiB -- true 2>"$work/err" && fail "GPU 3 of 1 was granted"
grep -q '3' "$work/err" || fail "the refusal does not name the GPU"
# --wait: granted as soon as there is room.
same "waited" "result 0" \
  "$("$aliquot" run --wait --memory 40GiB -- $driver alloc $GiB 2>"$work/err")"
same "says once what for" 1 "$(grep -c 'waiting until there is room: .*GiB' "$work/err")"
for bad in 0 -1GiB 4 4XB 99999999999999999999GiB; do
  "$aliquot" run -q --memory "$bad" -- true 2>"$work/err" && fail "--memory $bad was accepted"
  grep -qF -- "$bad" "$work/err" || fail "the error does not name $bad"
done
