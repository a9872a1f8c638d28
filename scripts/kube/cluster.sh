#!/usr/bin/env bash
# usage: cluster.sh up [standalone] | down | in COMMAND... | run NAME COMMAND... | start NAME... |
#        stop NAME [SIGNAL]
#
# One Kubernetes node and its control plane as plain processes, in namespaces of their own (mounts,
# network, processes): own /run, /var and ports, the caller's files and devices. So several can run
# beside each other, and `down` leaves nothing: with the first process of the namespace go all
# processes, mounts and addresses; its cgroups and the run directory are removed by hand.
#
#   up          etcd, API server, controller manager, scheduler, containerd, kubelet; node Ready
#   standalone  containerd and kubelet alone: pods come from $RUN/manifests
#   in          runs a command inside, as root of that machine
#   run         the same in the background, its output in $RUN/logs/NAME.log, to be stopped by NAME
#   start stop  one of the processes (names: inside.sh); stop waits until it has ended
#
# The run directory is $KUBE_RUN, else /tmp/aliquot-kube. Needs root. Not for a real node.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export KUBE_RUN=${KUBE_RUN:-/tmp/aliquot-kube}
usage="usage: cluster.sh up [standalone] | down | in|run|start|stop ...: see its first lines"
refuse() { echo "kube: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || refuse "root is needed: namespaces, mounts, cgroups and containers are made"

init_pid() { cat "$KUBE_RUN/init.pid" 2>/dev/null; }
inside() {
  local pid
  pid=$(init_pid) && [ -d "/proc/$pid" ] || refuse "no cluster runs in $KUBE_RUN: cluster.sh up"
  exec nsenter --target "$pid" --mount --net --pid --wdns="$PWD" -- "$@"
}

up() {
  local kind=${1:-full} tool
  [ ! -e "$KUBE_RUN/init.pid" ] || refuse "$KUBE_RUN is in use: cluster.sh down, or another KUBE_RUN"
  for tool in runc openssl ip nsenter unshare; do
    command -v $tool >/dev/null || refuse "$tool is not installed: scripts/setup.sh e2e"
  done
  [ -x /usr/lib/cni/loopback ] || refuse "/usr/lib/cni/loopback is not installed: scripts/setup.sh e2e"
  KUBE_BIN=$("$here/binaries.sh")
  KUBE_IMAGES=$("$here/images.sh")
  mkdir -p "$KUBE_RUN"/{logs,pids,pki,manifests,cni}
  install -m755 "$here/null_cni" "$KUBE_RUN/cni/null_cni"
  ln -s /usr/lib/cni/loopback "$KUBE_RUN/cni/loopback"
  printf 'export KUBE_BIN=%q KUBE_IMAGES=%q\n' "$KUBE_BIN" "$KUBE_IMAGES" >"$KUBE_RUN/environment"
  setsid unshare --mount --net --pid --fork "$here/inside.sh" init \
    >"$KUBE_RUN/logs/init.log" 2>&1 </dev/null &
  local waited=0
  until [ -s "$KUBE_RUN/init.pid" ]; do
    sleep 0.02
    [ $((waited += 1)) -lt 250 ] ||
      { cat "$KUBE_RUN/logs/init.log" >&2; down; refuse "the namespaces could not be made"; }
  done
  (inside "$here/inside.sh" up "$kind") || { down; exit 1; }
}

down() {
  local pid hierarchy waited=0
  if pid=$(init_pid); then
    kill -KILL "$pid" 2>/dev/null || true
    while [ -d "/proc/$pid" ]; do
      sleep 0.05
      [ $((waited += 1)) -lt 600 ] || refuse "process $pid of $KUBE_RUN does not end"
    done
  fi
  # A container's cgroup is empty a moment after its last process, not with it.
  for hierarchy in /sys/fs/cgroup/*/"$(basename "$KUBE_RUN")" /sys/fs/cgroup/"$(basename "$KUBE_RUN")"; do
    for waited in $(seq 100); do
      [ -d "$hierarchy" ] || break
      find "$hierarchy" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
    done
    [ ! -d "$hierarchy" ] || refuse "$hierarchy is still in use"
  done
  rm -rf "$KUBE_RUN"
}

command=${1:?$usage}
shift
case $command in
  up) up "$@" ;;
  down) down ;;
  in) inside "${@:?$usage}" ;;
  run | start | stop) inside "$here/inside.sh" "$command" "${@:?$usage}" ;;
  *) refuse "$usage" ;;
esac
