#!/usr/bin/env bash
# A node of its own: its kubelet knows no API server, its pods are files; the share is the same.
. "$(dirname "$0")/harness.sh"
export KUBE_RUN=$KUBE_RUN-alone
trap '"$cluster" down; finish' EXIT
"$cluster" up standalone
aliquot sim up --node a100x2 --name node >/dev/null
"$cluster" run aliquotd "$BUILD/bin/aliquotd" --sim node
offered() { [ "$(on_node podresources allocatable aliquot.dev/gpu)" = 32 ]; }
within 30 offered
cat >"$KUBE_RUN/manifests/hello.yaml" <<EOF
apiVersion: v1
kind: Pod
metadata: {name: hello, namespace: default, annotations: {aliquot.dev/memory: 4GiB, aliquot.dev/cores: "30"}}
spec:
  volumes: [{name: e2e, hostPath: {path: $here/programs}}]
  containers:
  - name: c
    image: aliquot.test/debian:1
    imagePullPolicy: Never
    command: [sh, -c, "python3 -u /e2e/total.py; exec sleep infinity"]
    resources: {limits: {aliquot.dev/gpu: 1}}
    volumeMounts: [{name: e2e, mountPath: /e2e, readOnly: true}]
EOF
printed() { grep -q " $((4 * GiB))$" "$KUBE_RUN"/logs/pods/default_hello-*/c/0.log; }
within 60 printed
rm "$KUBE_RUN/manifests/hello.yaml"
within 60 no_leases
