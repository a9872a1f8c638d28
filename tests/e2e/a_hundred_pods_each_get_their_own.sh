#!/usr/bin/env bash
# Made at once, each with another limit: every container must see its own, by name. The daemon that has
# seen them come and go holds no more memory than it may.
. "$(dirname "$0")/harness.sh"
count=${PODS:-100}
for i in $(seq "$count"); do
  pod "p$i" debian 'exec python3 -u /e2e/total.py' "{aliquot.dev/memory: '$((600 + i))MiB'}" 1
done | create
all_done() { [ "$(kubectl get pods -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -cE 'Succeeded|Failed')" -ge "$count" ]; }
within 300 all_done
for i in $(seq "$count"); do
  same "memory of p$i" $(((600 + i) * MiB)) "$(kubectl logs "p$i")"
done
same "questions to podresources over kubelet's rate" 0 "$(metric aliquot_node_podresources_refusals_total)"
delete --all
within 20 no_leases
resident=$(on_node awk '/^VmRSS/ {print $2}' "/proc/$(cat "$KUBE_RUN/pids/aliquotd")/status")
[ "$resident" -lt 65536 ] || fail "aliquotd has $resident KiB resident, 64 MiB are its most"
echo "aliquotd: $((resident / 1024)) MiB resident after $count pods"
