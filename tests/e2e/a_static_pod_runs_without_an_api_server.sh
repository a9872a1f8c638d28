#!/usr/bin/env bash
# A node of its own: its kubelet knows no API server, its pods are files.
. "$(dirname "$0")/harness.sh"
export KUBE_RUN=$KUBE_RUN-alone
trap '"$cluster" down; finish' EXIT
"$cluster" up standalone
cat >"$KUBE_RUN/manifests/hello.yaml" <<EOF
apiVersion: v1
kind: Pod
metadata: {name: hello, namespace: default}
spec:
  containers:
  - {name: c, image: "aliquot.test/busybox:1", imagePullPolicy: Never, command: [sleep, infinity]}
EOF
phase() { "$cluster" in curl -sf http://127.0.0.1:10255/pods | python3 -c \
  'import json, sys; print(json.load(sys.stdin)["items"][0]["status"]["phase"])'; }
running() { [ "$(phase)" = Running ]; }
within 20 running
