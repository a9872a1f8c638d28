#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
shared_pod live 4GiB 30
within 60 running live
# What is in force on the node: bytes, and percent of the GPU's time.
in_force() {
  aliquot share get pod/default/live --json | python3 -c 'import json, sys
gpu = json.load(sys.stdin)["leases"][0]["gpus"][0]
print(gpu["limit_bytes"], round(gpu["compute"]["cores_percent"]))'
}
is_in_force() { [ "$(in_force)" = "$1 $2" ]; }
same "at first" "$((4 * GiB)) 30" "$(in_force)"
total() { kubectl exec live -- python3 /e2e/total.py; }
kubectl annotate pod live aliquot.dev/share=memory=8GiB,cores=50 >/dev/null
within 1 is_in_force $((8 * GiB)) 50
same "in the pod" $((8 * GiB)) "$(total)"
aliquot share set pod/default/live --memory 6GiB --cores 40 >/dev/null
same "after an order on the node" "$((6 * GiB)) 40" "$(in_force)"
same "in the pod, after an order on the node" $((6 * GiB)) "$(total)"
kubectl annotate --overwrite pod live aliquot.dev/share=memory=900GiB >/dev/null
refused() { kubectl get events --field-selector involvedObject.name=live,reason=ShareRefused -o name | grep -q event; }
within 5 refused
same "after a change that does not fit" "$((6 * GiB)) 40" "$(in_force)"
kubectl annotate pod live aliquot.dev/share- >/dev/null
within 1 is_in_force $((4 * GiB)) 30
same "in the pod, at last" $((4 * GiB)) "$(total)"
