#!/usr/bin/env bash
# Kubelet and the daemon are killed at random moments while pods come and go: kubelet's view is right again
# in time, no container loses its limit, no lease leaks.
. "$(dirname "$0")/harness.sh"
rounds=5
[ "$E2E_MODE" = short ] || rounds=50
RANDOM=7

shared_pod steady 4GiB 30
within 60 running steady
churn() {
  local i=0
  while [ ! -e "$work/over" ]; do
    pod "churn$((i += 1))" debian 'python3 -u /e2e/total.py; sleep 1' "{aliquot.dev/memory: 1GiB}" 1 | create || true
    sleep 0.7
    kubectl get pods -o 'jsonpath={range .items[?(@.status.phase=="Succeeded")]}{.metadata.name} {.status.phase}{"\n"}{end}' |
      while read -r name _; do
        [ "$(kubectl logs "$name" 2>/dev/null)" = "$GiB" ] || echo "$name: $(kubectl logs "$name" 2>&1)" >>"$work/wrong"
        kubectl delete pod "$name" --wait=false >/dev/null 2>&1 || true
      done
  done
}
churn 2>"$work/churn.log" &
churner=$!

for round in $(seq "$rounds"); do
  sleep "0.$((RANDOM % 900 + 100))"
  "$cluster" stop aliquotd KILL && daemon
  within 5 kubelet_offers_all
  sleep "0.$((RANDOM % 900 + 100))"
  "$cluster" stop kubelet KILL && "$cluster" start kubelet
  within 15 kubelet_offers_all
  within 15 gpus_allocatable
  same "round $round: the limit of a pod that ran all the time" $((4 * GiB)) \
    "$(kubectl exec steady -- python3 /e2e/total.py)"
done
touch "$work/over"
wait $churner || true
[ ! -e "$work/wrong" ] || fail "containers that ran to their end saw another limit: $(cat "$work/wrong")"
restarts=$(pod_field steady '.status.containerStatuses[0].restartCount')
same "restarts of the pod that ran all the time" 0 "$restarts"
kubectl delete pods --all --wait=true --timeout=120s >/dev/null
within 20 no_leases
