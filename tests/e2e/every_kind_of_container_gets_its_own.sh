#!/usr/bin/env bash
# Init containers, sidecars, several containers, one that is started again, and a name that is used again.
. "$(dirname "$0")/harness.sh"

container() {  # NAME COMMAND [MORE]
  cat <<EOF
  - name: $1
    image: aliquot.test/debian:1
    imagePullPolicy: Never
    command: [sh, -c, "$2"]
    resources: {limits: {aliquot.dev/gpu: 1}}
    volumeMounts: [{name: e2e, mountPath: /e2e, readOnly: true}]
EOF
  [ -z "${3:-}" ] || echo "    $3"
}
total='exec python3 -u /e2e/total.py'
{
  cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: kinds, annotations: {aliquot.dev/memory: "setup=1GiB, side=2GiB, one=3GiB, two=4GiB"}}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  volumes: [{name: e2e, hostPath: {path: $here/programs}}]
  initContainers:
EOF
  container setup "$total"
  container side 'python3 -u /e2e/total.py; exec sleep infinity' 'restartPolicy: Always'
  echo '  containers:'
  container one 'python3 -u /e2e/total.py; exec sleep infinity'
  container two "python3 -u /e2e/total.py; sleep 2"
} | create
says() { [ "$(kubectl logs kinds -c "$1" 2>/dev/null)" = $(($2 * GiB)) ]; }  # CONTAINER GIB
within 90 says setup 1
within 90 says side 2
within 90 says one 3
within 90 says two 4
restarted() { [ "$(pod_field kinds ".status.containerStatuses[?(@.name=='two')].restartCount")" -ge 1 ]; }
within 60 restarted
within 60 says two 4
delete kinds

shared_pod again 2GiB 10
within 60 running again
same "at first" $((2 * GiB)) "$(kubectl exec again -- python3 /e2e/total.py)"
delete again
shared_pod again 5GiB 10
within 60 running again
same "another pod of that name" $((5 * GiB)) "$(kubectl exec again -- python3 /e2e/total.py)"
