#!/usr/bin/env bash
# Each health fault takes its GPU away within an interval (an XID at once), is told to kubelet and as node
# condition, taint, Event, metric and in `aliquot ps`; the others are served; it comes back by itself.
. "$(dirname "$0")/harness.sh"
interval=4
configure() { printf 'health_check_interval: %ss\nunhealthy_taint: PreferNoSchedule\nhealth_quiet: %s\n' $interval "$1" >"$work/aliquotd.yaml"; }
configure 5m
daemon_with --config "$work/aliquotd.yaml"

condition() { kubectl get node "$NODE" -o "jsonpath={.status.conditions[?(@.type=='GpusHealthy')].$1}"; }
condition_is() { [ "$(condition status)" = "$1" ]; }
condition_says() { condition message | grep -q "$1"; }
taint() { kubectl get node "$NODE" -o "jsonpath={.spec.taints[?(@.key=='aliquot.dev/gpu-unhealthy')].effect}"; }
taint_is() { [ "$(taint)" = "$1" ]; }
kubelet_offers() { [ "$(on_node podresources allocatable aliquot.dev/gpu)" = "$1" ]; }
node_offers() { [ "$(slots_offered)" = "$1" ]; }
all_have_answered() { [ "$(metric 'aliquot_gpu_answer_age_seconds{.*}' | wc -l)" = 8 ]; }
ps_says() { aliquot ps | grep -q "$1"; }
healthy() { metric "aliquot_gpu_health{gpu=\"$1\".*state=\"healthy\"}"; }  # GPU

mapfile -t uuids < <(aliquot smi --query-gpu=uuid --format=csv,noheader)  # asked while NVML answers
within 10 condition_is True
within 10 all_have_answered
shared_pod before 4GiB 30
within 60 running before

# An NVML that hangs for ever on GPU 3 costs the other seven nothing: metrics within 1 s, Allocate, a share
# on each of them at once.
fault --gpu 3 --nvml-hang 3600000
within 17 kubelet_offers 112  # asked within 4 s, two silences of 5 s: one may be a reset
metrics 1 >/dev/null || fail "metrics did not answer within 1 s while NVML hangs on GPU 3"
same "slots kubelet would give of GPU 3" 0 "$(healthy 3)"
same "memory of a pod that runs all the time" $((4 * GiB)) "$(kubectl exec before -- python3 /e2e/total.py)"
others=(0 1 2 4 5 6 7)
for gpu in "${others[@]}"; do bound_pod "on$gpu" "${uuids[gpu]}" 4 3000 'exec sleep infinity'; done
for gpu in "${others[@]}"; do within 20 running "on$gpu"; done
for gpu in "${others[@]}"; do
  seen=$(view "on$gpu")
  same "the GPU of pod on$gpu" "${uuids[gpu]}" "$(fact "$seen" uuid)"
  same "memory of a pod on GPU $gpu" $((4 * GiB)) "$(fact "$seen" total)"
done
delete "${others[@]/#/on}"

# An XID: at once.
fault --gpu 0 --xid 48
within 1 kubelet_offers 96
within 2 condition_says 'GPU 0 GPU-.* is unhealthy: XID 48'
within 5 event_says 'GpuUnhealthy: GPU 0 .*XID 48'

# The others, together: each within an interval.
fault --gpu 1 --lost
fault --gpu 2 --ecc-double 3
fault --gpu 4 --link-down 2
fault --gpu 5 --temperature 95
within $((interval + 1)) kubelet_offers 32
within 6 node_offers 32
within 2 condition_is False
for said in 'GPU 1 .*lost' 'GPU 2 .*ECC' 'GPU 3 .*does not answer' 'GPU 4 .*NVLink 2' 'GPU 5 .*95 C'; do
  within 3 condition_says "$said"
  within 3 event_says "GpuUnhealthy: $said"
  ps_says "$said" || fail "ps does not say '$said': $(aliquot ps)"
done
within 3 taint_is PreferNoSchedule
same "GPUs that are healthy by the metrics" "0 0 0 0 0 0 1 1" "$(healthy '.' | xargs)"

# Gone, they come back by themselves; an XID and ECC errors, of which nothing can be seen, after a quiet time.
configure 2s
on_node kill -HUP "$(cat "$KUBE_RUN/pids/aliquotd")"
for gpu in 0 1 2 3 4 5; do fault --gpu $gpu --lift; done
within 60 kubelet_offers_all
within 6 gpus_allocatable
within 5 condition_is True
within 5 taint_is ''
for gpu in 0 1 2 3 4 5; do within 5 event_says "GpuRecovered: GPU $gpu "; done
! ps_says 'GPU . GPU-.* is ' || fail "ps still tells: $(aliquot ps)"
same "GPUs that are healthy by the metrics" "1 1 1 1 1 1 1 1" "$(healthy '.' | xargs)"

# A row that waits for a reset is a doubt and costs nothing; one that could not be remapped does. Errors of
# a link are a fault when they grow at two probes running, and none once they stop.
fault --gpu 6 --row-remap pending
within $((interval + 1)) ps_says 'GPU 6 GPU-.* is suspect: a remapped row waits'
kubelet_offers_all || fail "a doubt took slots away"
fault --gpu 6 --row-remap failed
within $((interval + 1)) kubelet_offers 112
within 3 condition_says 'GPU 6 .*could not be remapped'
fault --gpu 6 --lift
links_grow() { fault --gpu 7 --link-errors 3:5; condition_says 'GPU 7 .* new errors on NVLinks'; }
within $((3 * interval)) links_grow
within 30 kubelet_offers_all
within 5 condition_is True
delete before
within 20 no_leases
daemon_with
