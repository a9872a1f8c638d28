#!/usr/bin/env bash
# usage: daemon_account.sh -- run inside a cluster (cluster.sh in): makes aliquotd's account as
# deploy/kubernetes/rbac.yaml has it, and $KUBE_RUN/pki/aliquotd.kubeconfig with a token of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
pki=$KUBE_RUN/pki
. "$KUBE_RUN/environment"
export KUBECONFIG=$pki/admin.kubeconfig PATH=$KUBE_BIN:$PATH
kubectl apply -f deploy/kubernetes/rbac.yaml >/dev/null
kubectl apply --dry-run=server -f deploy/kubernetes/daemonset.yaml >/dev/null  # an example, but a valid one
umask 077
kubectl -n aliquot-system create token aliquotd --duration=24h >"$pki/aliquotd.token"
sed -e 's/^users:.*/users: [{name: aliquotd, user: {tokenFile: aliquotd.token}}]/' \
  -e 's/user: admin/user: aliquotd/' "$pki/admin.kubeconfig" >"$pki/aliquotd.kubeconfig"
