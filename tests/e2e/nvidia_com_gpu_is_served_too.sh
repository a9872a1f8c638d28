#!/usr/bin/env bash
# nvidia.com/gpu beside aliquot.dev/gpu: a replica is an equal part of a GPU, and what a pod says of memory counts.
. "$(dirname "$0")/harness.sh"
daemon_with --nvidia-replicas 4
offered() { [ "$(kubectl get node "$NODE" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$1" ]; }
within 10 offered 32
nvidia_pod() { pod "$1" debian 'exec sleep infinity' "$2" 1 | sed 's|aliquot.dev/gpu:|nvidia.com/gpu:|' | create; }
nvidia_pod part '{}'
nvidia_pod sized "{aliquot.dev/memory: 4GiB, aliquot.dev/cores: '10'}"
shared_pod ours 4GiB 10
for name in part sized ours; do within 60 running $name; done
total=$(fact "$(view part)" total)
[ "$total" -gt $((19 * GiB)) ] && [ "$total" -lt $((21 * GiB)) ] || fail "a fourth of 80 GiB is not $total"
same "memory of a pod that says how much" $((4 * GiB)) "$(fact "$(view sized)" total)"
same "memory of a pod with our own resource" $((4 * GiB)) "$(fact "$(view ours)" total)"
delete part sized ours
within 20 no_leases
daemon_with
