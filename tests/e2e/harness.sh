# Sourced by the end-to-end tests: a real node (scripts/kube/cluster.sh) beside a simulated 8-GPU
# machine, both started by scripts/e2e.sh and shared by all tests, one after another. Each test makes
# its own pods; they are gone at its end. Expects BUILD, KUBE_RUN and NODE in the environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/../../scripts/kube/cluster.sh
work=$(mktemp -d /tmp/aliquot-e2e-test.XXXXXX)
on_node() { "$cluster" in env KUBECONFIG="$KUBE_RUN/pki/admin.kubeconfig" PATH="$BUILD/bin:$KUBE_BIN:$PATH" "$@"; }
kubectl() { on_node kubectl "$@"; }
aliquot() { on_node aliquot "$@"; }

finish() {
  local status=$?
  trap - EXIT
  if [ "$status" != 0 ]; then
    echo "-- pods and events:"
    kubectl get pods -A -o wide || true
    kubectl get events -A --sort-by=.lastTimestamp | tail -15 || true
  fi 2>&1
  kubectl delete pods --all --grace-period=0 --force --wait=true --timeout=30s >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

fail() { echo "FAILED: $*"; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"; }  # WHAT EXPECTED FOUND
within() {  # SECONDS COMMAND...: until it succeeds
  local end=$(($(date +%s%N) + $1 * 1000000000))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s%N)" -lt "$end" ] || fail "not in time: $*"
    sleep 0.1
  done
}
pod_field() { kubectl get pod "$1" -o "jsonpath={$2}"; }  # POD JSONPATH
phase_is() { [ "$(pod_field "$1" .status.phase)" = "$2" ]; }  # POD PHASE

logs_are() { [ "$(kubectl logs "$1" 2>/dev/null)" = "$2" ]; }  # POD TEXT

# POD IMAGE COMMAND [ANNOTATIONS_JSON [SLOTS [SCHEDULER]]]: one container `c`, run by `sh -c COMMAND`, with
# the programs of this directory at /e2e.
pod() {
  local limits='{}'
  [ -z "${5:-}" ] || limits="{aliquot.dev/gpu: $5}"
  cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: ${4:-"{}"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  schedulerName: ${6:-default-scheduler}
  enableServiceLinks: false
  tolerations: [{operator: Exists}]
  volumes: [{name: e2e, hostPath: {path: $here/programs}}]
  containers:
  - name: c
    image: aliquot.test/$2:1
    imagePullPolicy: Never
    command: [sh, -c, $(printf '%s' "$3" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))')]
    resources: {limits: $limits}
    volumeMounts: [{name: e2e, mountPath: /e2e, readOnly: true}]
EOF
}
create() { kubectl create -f - >/dev/null; }
gone() { ! kubectl get pod "$1" >/dev/null 2>&1; }
delete() { kubectl delete pod "$@" --wait=true --timeout=60s >/dev/null; }

# A pod that stays, with a share: POD MEMORY CORES.
shared_pod() {
  pod "$1" debian 'exec sleep infinity' "{aliquot.dev/memory: '$2', aliquot.dev/cores: '$3'}" 1 | create
}
running() { [ "$(pod_field "$1" .status.containerStatuses[0].state.running.startedAt)" != "" ]; }
reachable() { kubectl exec "$1" -- true; }  # a new kubelet learns its pods again
# What a program in the pod sees of its GPUs, one fact a line (programs/share_view.py).
view() { kubectl exec "$1" -- python3 /e2e/share_view.py; }  # POD
fact() { sed -n "s/^$2: //p" <<<"$1"; }  # VIEW NAME
# POD GPU_UUID GIB CORES COMMAND: made for no scheduler, then bound with the assignment in the Binding.
bound_pod() {
  local assignment
  assignment=$(printf '{"version":1,"containers":[{"name":"c","gpus":[{"uuid":"%s","memory_bytes":%s,"cores":%s}]}]}' \
    "$2" $(($3 * GiB)) "$4")
  pod "$1" debian "$5" '{}' 1 nobody | create
  python3 -c 'import json, sys
name, node, assignment = sys.argv[1:]
print(json.dumps({"apiVersion": "v1", "kind": "Binding", "target": {"apiVersion": "v1", "kind": "Node", "name": node},
  "metadata": {"name": name, "annotations": {"aliquot.dev/assignment": assignment}}}))' "$1" "$NODE" "$assignment" |
    kubectl create --raw "/api/v1/namespaces/default/pods/$1/binding" -f - >/dev/null
}
# The daemon, as scripts/e2e.sh starts it at first: daemon [FLAG...]
daemon() {
  "$cluster" run aliquotd env KUBECONFIG="$KUBE_RUN/pki/aliquotd.kubeconfig" "$BUILD/bin/aliquotd" --sim node \
    --node-name "$NODE" "$@"
}
# Another one, with other flags, that kubelet has taken up: daemon_with [FLAG...]
daemon_with() {
  "$cluster" stop aliquotd && daemon "$@"
  within 10 kubelet_offers_all
}
metrics() { on_node curl -sf --max-time "${1:-5}" http://127.0.0.1:9478/metrics; }  # [SECONDS]
metric() { metrics | sed -n "s/^$1 //p"; }  # NAME_AND_LABELS, a pattern; several lines where it is many
fault() { aliquot sim fault node "$@"; }
gpu_uuid() { aliquot smi --query-gpu=uuid --format=csv,noheader | sed -n "$(($1 + 1))p"; }  # INDEX
event_says() { kubectl get events -A -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}' | grep -q "$1"; }
leases() { on_node ls /run/aliquot/leases; }  # a directory each, whoever it is for
no_leases() { [ -z "$(leases)" ]; }
slots_offered() { kubectl get node "$NODE" -o 'jsonpath={.status.allocatable.aliquot\.dev/gpu}'; }
gpus_allocatable() { [ "$(slots_offered)" = 128 ]; }  # 8 GPUs with 16 slots
# Kubelet's own view, which its node status follows at the next sync.
kubelet_offers_all() { [ "$(on_node podresources allocatable aliquot.dev/gpu)" = 128 ]; }
kubelet_answers() { on_node podresources allocatable aliquot.dev/gpu; }
GiB=$((1 << 30)) MiB=$((1 << 20))
