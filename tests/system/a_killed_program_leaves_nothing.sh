#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" run -q --name keep --memory 4GiB -- $driver hold $GiB &
"$aliquot" run -q --name dies --memory 4GiB -- sh -c "echo \$\$ >$work/pid; exec $driver hold $((2 * GiB))" &
within 10 used_at_least keep $GiB
within 10 used_at_least dies $((2 * GiB))
kept=$(used keep)
kill -KILL "$(cat "$work/pid")"
within 2 gone dies
same "the other lease" "$kept" "$(used keep)"
gpu_processes() { "$aliquot" smi --json | python3 -c \
  'import json, sys; print(sum(len(g["processes"]) for g in json.load(sys.stdin)["gpus"]))'; }
within 2 [ "$(gpu_processes)" = 1 ]
same "leases" 1 "$("$aliquot" ps --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["leases"]))')"
