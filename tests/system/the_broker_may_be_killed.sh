#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" run -q --name a --memory 4GiB -- $driver hold $GiB &
within 10 used_at_least a $GiB
held=$(used a)
"$aliquot" run -q --name b --memory 1GiB -- $driver churn 6 >"$work/churn" &
churn=$!
for _ in 1 2 3 4 5; do
  sleep 0.4
  kill -KILL "$(broker)"
  within 3 sh -c "'$aliquot' share get a >/dev/null 2>&1"
  same "used after a new broker" "$held" "$(used a)"
done
same "a newcomer" "result 0" "$("$aliquot" run -q --memory 4GiB -- $driver alloc $GiB)"
wait "$churn"
same "errors under load" "errors 0" "$(grep errors "$work/churn")"
