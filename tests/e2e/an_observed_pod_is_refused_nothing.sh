#!/usr/bin/env bash
# enforce=observe by namespace or pod: what would have been refused is counted, and nothing is refused. Taken
# back without a restart, also for a pod that runs.
. "$(dirname "$0")/harness.sh"
daemon_with --observe default/watched
would_refuse() { metric "aliquot_container_gpu_observed_refusals_total{.*pod=\"$1\".*"; }
gpu=$(gpu_uuid 1)
bound_pod watched "$gpu" 4 1000 'exec sleep infinity'
bound_pod kept "$gpu" 4 1000 'exec sleep infinity'
within 60 running watched
within 60 running kept
hold() { kubectl exec "$1" -- python3 -u /e2e/burn.py $((6 * GiB)) 500 once 2>&1 | head -1; }  # more than its 4 GiB
same "a pod that is watched, past its limit" held "$(hold watched)"
same "a pod that is not, past its limit" "cuMemAlloc_v2: 2" "$(hold kept)"
seen=$(view watched)
[ "$(fact "$seen" total)" -gt $((70 * GiB)) ] || fail "a watched pod does not see the GPU: $seen"
aliquot ps --json | python3 -c 'import json, sys
leases = {lease["name"].split(".")[0]: lease for lease in json.load(sys.stdin)["leases"]}
assert leases["watched"]["observed"] and leases["watched"]["would_refuse"] >= 1, leases["watched"]
assert not leases["kept"]["observed"] and leases["kept"]["would_refuse"] == 0, leases["kept"]' ||
  fail "ps tells something else"
[ "$(would_refuse watched)" -ge 1 ] || fail "the metric says $(would_refuse watched)"
# Another configuration: in force for the pod that runs.
daemon_with
same "the same pod, not watched any more" "cuMemAlloc_v2: 2" "$(hold watched)"
delete watched kept
within 20 no_leases
