#!/usr/bin/env bash
# A tenant in a pod writes junk into its ledger, removes and replaces what it was given, floods its socket and
# loads the driver behind ours by a loader of its own: the others notice nothing, and it is told who did it.
. "$(dirname "$0")/harness.sh"
deed() { kubectl exec bad -- timeout 60 python3 /e2e/hostile.py "$1"; }
ps_says() { aliquot ps | grep -q "$1"; }
unleased_are() { [ "$(metric aliquot_node_unleased_processes)" = "$1" ]; }
others_are_well() {  # WHEN
  local seen began=$SECONDS
  seen=$(view good) || fail "$1: good cannot use its GPU: $seen"
  same "$1: memory of good" $((8 * GiB)) "$(fact "$seen" total)"
  same "$1: an allocation of good within its limit" 0 "$(fact "$seen" 'within the limit')"
  same "$1: an allocation of good past it" 2 "$(fact "$seen" 'past the limit')"
  same "$1: what good holds goes on" held "$(kubectl logs good)"
  aliquot ps >/dev/null && metrics 2 >/dev/null || fail "$1: the daemon does not answer"
  [ $((SECONDS - began)) -le 10 ] || fail "$1: that took $((SECONDS - began)) s"
}

gpu=$(gpu_uuid 0)
bound_pod good "$gpu" 8 5000 "exec python3 -u /e2e/burn.py $GiB 500"
bound_pod bad "$gpu" 4 3000 'exec sleep infinity'
within 60 logs_are good held
within 60 running bad

seen=$(deed unlink)
same "what a tenant could change of what it was given" "could change: nothing" "$seen"
others_are_well "after it tried to remove and replace things"

seen=$(deed scribble) || true
same "the ledger it could write to" "ledger: 1" "$seen"
others_are_well "after it wrote junk into its ledger"
within 6 ps_says 'lease bad\..* wrote its ledger outside the protocol'
within 5 event_says 'ShareMisused: container c wrote its ledger'

deed flood >"$work/flood" &
flood=$!
sleep 1
others_are_well "while it floods its socket"
bound_pod newcomer "$gpu" 4 0 'exec sleep infinity'
within 20 running newcomer
wait $flood || fail "flood: $(cat "$work/flood")"
within 6 ps_says 'lease bad\..* floods its socket'
within 5 event_says 'ShareMisused: container c floods its socket'

deed bypass >"$work/bypass" 2>&1 &
within 10 grep -q 'has 10 GiB' "$work/bypass"
within 10 unleased_are 1
ps_says 'process .* uses GPU .* without a lease' || fail "ps does not name it: $(aliquot ps)"
within 3 event_says 'GpuUseWithoutShare: process .* (loader) uses GPU'
others_are_well "while it uses the driver past us"

# The same where such processes are to be ended.
kubectl delete pod bad --grace-period=0 --force >/dev/null 2>&1
within 20 unleased_are 0
daemon_with --on-unleased end
bound_pod bad2 "$gpu" 4 3000 'exec sleep infinity'
within 60 running bad2
if kubectl exec bad2 -- timeout 30 python3 /e2e/hostile.py bypass >"$work/bypass2" 2>&1; then
  fail "a process that uses the driver past its share was left alone"
fi
grep -q 'has 10 GiB' "$work/bypass2" || fail "it could not even begin: $(cat "$work/bypass2")"
within 5 event_says 'GpuUseWithoutShare: process .* it was ended'
running bad2 || fail "more than that process was ended"
others_are_well "after it was ended"
delete good bad2 newcomer
within 20 no_leases
daemon_with
