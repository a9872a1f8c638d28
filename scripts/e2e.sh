#!/usr/bin/env bash
# usage: e2e.sh short|long [TEST...] -- the end-to-end tests (tests/e2e): a real kubelet, control plane
# and containerd beside a simulated 8-GPU machine in slow motion (so that shares of its time are told on
# a busy host too), from the release build. Each test prints its
# seconds. What they need and this machine lacks is named and they are skipped; with E2E_REQUIRED=1
# that fails.
set -euo pipefail
mode=${1:?usage: e2e.sh short|long [TEST...]}
shift
cd "$(dirname "$0")/.."
patience=600
[ "$mode" = short ] || patience=3600
export E2E_MODE=$mode BUILD=${BUILD:-$PWD/build/release} NODE=node-a
export KUBE_RUN=${KUBE_RUN:-/tmp/aliquot-e2e-$$}
cluster=scripts/kube/cluster.sh

skip() {
  echo "e2e: skipped: $*"
  [ "${E2E_REQUIRED:-0}" != 1 ] || { echo "e2e: E2E_REQUIRED=1, so that is a failure"; exit 1; }
  exit 0
}
finish() {
  local status=$?
  trap - EXIT
  if [ "$status" != 0 ] && [ -d "$KUBE_RUN/logs" ]; then
    rm -rf build/e2e-logs && cp -r "$KUBE_RUN/logs" build/e2e-logs
    echo "e2e: FAILED; the logs lie in build/e2e-logs"
  fi
  $cluster down
  exit "$status"
}

[ "$(id -u)" = 0 ] || skip "root is needed for namespaces, cgroups and containers"
began=$SECONDS
KUBE_BIN=$(scripts/kube/binaries.sh) || skip "the Kubernetes binaries are not to be had (see above)"
scripts/kube/images.sh >/dev/null || skip "the images could not be made (see above)"
export KUBE_BIN
echo "e2e: binaries and images: $((SECONDS - began)) s"

trap finish EXIT
at=$SECONDS
$cluster up
$cluster in scripts/kube/daemon_account.sh
$cluster in "$BUILD/bin/aliquot" sim up --node a100x8 --speed 0.1 --name node >/dev/null
(. tests/e2e/harness.sh && daemon && within 30 gpus_allocatable)
echo "e2e: a node beside a simulated a100x8: $((SECONDS - at)) s"

if [ $# = 0 ]; then
  for test in tests/e2e/*.sh; do
    [ "$(basename "$test")" = harness.sh ] || set -- "$@" "$test"
  done
fi
for test in "$@"; do
  at=$SECONDS
  name=$(basename "$test" .sh)
  timeout "$patience" "tests/e2e/$name.sh" || { echo "e2e: $name: FAILED after $((SECONDS - at)) s"; exit 1; }
  echo "e2e: $name: $((SECONDS - at)) s"
done
# The daemon is no administrator (deploy/kubernetes/rbac.yaml): whatever it was refused is a verb that is missing.
if grep -i 'forbidden\|cannot .* resource' "$KUBE_RUN"/logs/aliquotd.log; then
  echo "e2e: FAILED: the API server refused aliquotd something (see above): deploy/kubernetes/rbac.yaml"
  exit 1
fi
echo "e2e: all passed in $((SECONDS - began)) s (simulated GPUs)"
