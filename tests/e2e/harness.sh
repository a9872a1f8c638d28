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

# POD IMAGE COMMAND [ANNOTATIONS_JSON [LIMITS_JSON]]: one container `c`, run by `sh -c COMMAND`.
pod() {
  kubectl apply -f - >/dev/null <<EOF
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: ${4:-"{}"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers:
  - name: c
    image: aliquot.test/$2:1
    imagePullPolicy: Never
    command: [sh, -c, $(python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$3")]
    resources: {limits: ${5:-"{}"}}
EOF
}
