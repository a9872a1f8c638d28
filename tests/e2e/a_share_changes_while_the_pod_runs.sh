#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
shared_pod live 4GiB 30
within 60 running live
same "at first" $((4 * GiB)) "$(kubectl exec live -- python3 /e2e/total.py)"
total_is() { [ "$(kubectl exec live -- python3 /e2e/total.py)" = "$1" ]; }
kubectl annotate pod live aliquot.dev/share=memory=8GiB,cores=50 >/dev/null
within 3 total_is $((8 * GiB))
kubectl annotate --overwrite pod live aliquot.dev/share=memory=900GiB >/dev/null
refused() { kubectl get events --field-selector involvedObject.name=live,reason=ShareRefused -o name | grep -q event; }
within 5 refused
same "after a change that does not fit" $((8 * GiB)) "$(kubectl exec live -- python3 /e2e/total.py)"
kubectl annotate pod live aliquot.dev/share- >/dev/null
within 3 total_is $((4 * GiB))
