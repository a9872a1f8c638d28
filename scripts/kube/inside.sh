#!/usr/bin/env bash
# usage: inside.sh init | up full|standalone | run NAME COMMAND... | start NAME... | stop NAME [SIGNAL]
# What cluster.sh runs within its namespaces: the first process, and each part of the cluster. Names:
# etcd apiserver controller-manager scheduler containerd kubelet kubelet-standalone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$KUBE_RUN
pki=$run/pki
node=node-a
address=10.77.0.1  # kubelet refuses a loopback address, not another one on the loopback interface
cgroup=/$(basename "$run")
. "$run/environment"
export PATH=$KUBE_BIN:$PATH
. "$here/configuration.sh"

refuse() { echo "kube: $*" >&2; exit 1; }
within() { # SECONDS COMMAND...: until it succeeds
  local end=$(($(date +%s) + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || refuse "not in time: $* (see $run/logs)"
    sleep 0.05
  done
}

# The first process of the namespace: its mounts, then a parent for every orphan.
init() {
  local pid path
  read -r pid _ </proc/self/stat  # of the /proc that was there before: the pid as seen outside
  mount --make-rshared /
  mount -t proc proc /proc
  mkdir -p "$run/scratch"
  mount -t tmpfs tmpfs "$run/scratch"
  mkdir -p "$run"/scratch/{upper,work,containerd}
  mount -t overlay -o "lowerdir=/var,upperdir=$run/scratch/upper,workdir=$run/scratch/work" overlay /var
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /var/lib/kubelet /run/cdi /run/lock
  mount -t tmpfs -o mode=755 tmpfs /var/lib/kubelet
  ip link set lo up
  ip address add $address/32 dev lo
  # cgroup v1: the root of the pods must be there in every hierarchy, with its CPUs filled in.
  for path in $(awk '$3 == "cgroup" {print $2}' /proc/mounts) \
    $([ ! -e /sys/fs/cgroup/cgroup.controllers ] || echo /sys/fs/cgroup); do
    mkdir -p "$path$cgroup"
    [ ! -e "$path/cpuset.cpus" ] || [ ! -e "$path/tasks" ] ||
      for file in cpus mems; do cat "$path/cpuset.$file" >"$path$cgroup/cpuset.$file"; done
  done
  echo "$pid" >"$run/init.pid.new"
  mv "$run/init.pid.new" "$run/init.pid"
  sleep infinity &
  wait
}

launch() { # NAME COMMAND...
  local name=$1
  shift
  setsid "$@" >>"$run/logs/$name.log" 2>&1 </dev/null &
  echo $! >"$run/pids/$name"
}

start() {
  case $1 in
    etcd)
      launch etcd etcd --name e2e --data-dir "$run/scratch/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 \
        --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster e2e=http://127.0.0.1:2380
      ;;
    apiserver)
      launch apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
        --bind-address=127.0.0.1 --secure-port=6443 --advertise-address=127.0.0.1 \
        --service-cluster-ip-range=10.0.0.0/24 --endpoint-reconciler-type=none \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --client-ca-file="$pki/ca.crt" --cert-dir="$run/scratch/apiserver" \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$pki/sa.key" \
        --service-account-signing-key-file="$pki/sa.key" --token-auth-file="$pki/tokens.csv" \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
        --allow-privileged=true --profiling=false \
        --kubelet-client-certificate="$pki/apiserver-kubelet.crt" \
        --kubelet-client-key="$pki/apiserver-kubelet.key" \
        --kubelet-certificate-authority="$pki/ca.crt" \
        --kubelet-preferred-address-types=InternalIP,Hostname
      ;;
    controller-manager)
      # Its own default of 20 requests a second makes the first service account take 9 s.
      launch controller-manager kube-controller-manager \
        --{,authentication-,authorization-}kubeconfig="$pki/controller-manager.kubeconfig" \
        --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" \
        --use-service-account-credentials --leader-elect=false --bind-address=127.0.0.1 \
        --cert-dir="$run/scratch/controller-manager" --kube-api-qps=1000 --kube-api-burst=2000
      ;;
    scheduler)
      scheduler_configuration >"$run/scheduler.yaml"
      launch scheduler kube-scheduler --config="$run/scheduler.yaml" --bind-address=127.0.0.1 \
        --{authentication-,authorization-}kubeconfig="$pki/scheduler.kubeconfig" \
        --cert-dir="$run/scratch/scheduler"
      ;;
    containerd)
      containerd_configuration >"$run/containerd.toml"
      echo '{"cniVersion":"0.4.0","name":"none","plugins":[{"type":"null_cni"}]}' \
        >"$run/cni/10-none.conflist"
      launch containerd containerd --config "$run/containerd.toml"
      within 20 ctr -a "$run/containerd.sock" version
      ;;
    kubelet)
      kubelet_configuration full >"$run/kubelet.yaml"
      launch kubelet kubelet --config "$run/kubelet.yaml" --kubeconfig "$pki/node.kubeconfig" \
        --hostname-override $node --node-ip $address --v=2
      ;;
    kubelet-standalone)
      kubelet_configuration standalone >"$run/kubelet.yaml"
      launch kubelet kubelet --config "$run/kubelet.yaml" --cert-dir="$run/scratch/kubelet" \
        --hostname-override $node --v=2
      ;;
    *) refuse "there is no process '$1'" ;;
  esac
}

stop() { # NAME [SIGNAL]
  local pid
  pid=$(cat "$run/pids/$1" 2>/dev/null) || refuse "$1 was not started"
  kill -"${2:-TERM}" "$pid" 2>/dev/null || true
  within 20 eval "! kill -0 $pid"
  rm "$run/pids/$1"
}

import_images() {
  local image
  for image in "$KUBE_IMAGES"/*.tar; do
    ctr -a "$run/containerd.sock" -n k8s.io image import "$image" >>"$run/logs/images.log" 2>&1 ||
      refuse "$image was not imported: $run/logs/images.log"
  done
}

node_is_ready() { kubectl get node $node | grep -q ' Ready '; }

up() {
  if [ "$1" = standalone ]; then
    start containerd
    import_images
    start kubelet-standalone
    within 30 curl -sf http://127.0.0.1:10255/healthz
    return
  fi
  export KUBECONFIG=$pki/admin.kubeconfig
  "$here/certificates.sh" "$pki" $node $address
  start etcd
  start apiserver
  start containerd
  import_images
  within 60 kubectl get --raw /readyz
  start controller-manager
  start scheduler
  start kubelet
  within 60 kubectl -n default get serviceaccount default
  within 60 node_is_ready
}

command=$1
shift
case $command in
  init) init ;;
  up) up "$1" ;;
  run) launch "$@" ;;
  start) for name in "$@"; do start "$name"; done ;;
  stop) stop "$@" ;;
esac
