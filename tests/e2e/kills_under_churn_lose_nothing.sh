#!/usr/bin/env bash
# Kubelet and the daemon are killed at random moments while pods come and go: kubelet's view is right again
# in time, no container loses its limit, no lease leaks, and a pod is refused only between a kill and the
# registration after it.
. "$(dirname "$0")/harness.sh"
rounds=5
[ "$E2E_MODE" = short ] || rounds=50
RANDOM=7

shared_pod steady 4GiB 30
within 60 running steady
# Pods come, say what they see and go. What kubelet cannot tell for the moment is asked again.
churn() {
  local i=0 name seen
  while [ ! -e "$work/over" ]; do
    i=$((i + 1))
    pod "churn$i" debian 'python3 -u /e2e/total.py; sleep 1' "{aliquot.dev/memory: 1GiB}" 1 | create || true
    sleep 0.5
    for name in $(ended_pods); do
      seen=$(kubectl logs "$name") || continue
      echo "$name" >>"$work/ended"
      [ "$seen" = "$GiB" ] || echo "$name: $seen" >>"$work/wrong"
      kubectl delete pod "$name" --wait=false >/dev/null || true
    done
  done
}
ended_pods() {
  kubectl get pods -o 'jsonpath={range .items[?(@.status.phase=="Succeeded")]}{.metadata.name}{"\n"}{end}' || true
}
churn_is_over() {
  local phases
  phases=$(kubectl get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}') &&
    ! grep -Evq '^(steady .*|churn[0-9]+ (Succeeded|Failed))$' <<<"$phases"
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
# From BEGIN_MS until now a pod may have been refused.
may_refuse_since() { echo "$1 $(now_ms)" >>"$work/intervals"; }
churn 2>"$work/churn.log" &
churner=$!

sync_s=6  # kubelet's nodeStatusUpdateFrequency, and what the look at it takes
worst=0   # ms from a daemon's death until kubelet's own view is whole again
for round in $(seq "$rounds"); do
  sleep "0.$((RANDOM % 900 + 100))"
  killed=$(now_ms)
  "$cluster" stop aliquotd KILL && daemon
  within 2 kubelet_offers_all
  may_refuse_since "$killed"
  took=$(($(now_ms) - killed))
  [ "$took" -le 2000 ] || fail "round $round: kubelet's view was right only after $took ms"
  [ "$took" -le "$worst" ] || worst=$took
  within $sync_s gpus_allocatable
  sleep "0.$((RANDOM % 900 + 100))"
  killed=$(now_ms)
  "$cluster" stop kubelet KILL && "$cluster" start kubelet
  within 15 kubelet_answers
  within 2 kubelet_offers_all
  may_refuse_since "$killed"
  within $sync_s gpus_allocatable
  within 15 reachable steady
  same "round $round: the limit of a pod that ran all the time" $((4 * GiB)) \
    "$(kubectl exec steady -- python3 /e2e/total.py)"
done
touch "$work/over"
wait $churner || true
[ ! -e "$work/wrong" ] || fail "containers that ran to their end saw another limit: $(cat "$work/wrong")"
ended=$(sort -u "$work/ended" 2>/dev/null | wc -l)
[ "$ended" -ge "$rounds" ] || fail "only $ended pods of the churn ran to their end in $rounds rounds"
# Only those that ended well were deleted meanwhile.
within 60 churn_is_over
refused=$(kubectl get pods,events -o json | python3 "$here/programs/refused_pods.py" "$work/intervals") ||
  fail "a pod was lost otherwise than between a kill and the registration after it: $refused"
echo "pods refused between a kill and the registration after it: $(grep -c . <<<"$refused" || true) beside $ended that ran"
restarts=$(pod_field steady '.status.containerStatuses[0].restartCount')
same "restarts of the pod that ran all the time" 0 "$restarts"
leases | grep -q steady || fail "the lease of the pod that runs is not there: $(leases)"
echo "kubelet's view after a daemon's death: right within $worst ms"
kubectl delete pods --all --wait=true --timeout=120s >/dev/null
within 20 no_leases
