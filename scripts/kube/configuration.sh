# Sourced by inside.sh: what the parts of the cluster are told. Uses run, pki, address, cgroup and
# KUBE_BIN.

scheduler_configuration() {
  cat <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $pki/scheduler.kubeconfig, qps: 1000, burst: 2000}
leaderElection: {leaderElect: false}
EOF
}

containerd_configuration() {
  cat <<EOF
version = 3
root = "$run/scratch/containerd/root"
state = "$run/scratch/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "$run/containerd.sock"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "aliquot.test/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  cdi_spec_dirs = ["/run/cdi"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = "$KUBE_BIN/containerd-shim-runc-v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "$(command -v runc)"
      SystemdCgroup = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["$run/cni"]
    conf_dir = "$run/cni"
EOF
}

kubelet_configuration() { # full|standalone
  cat <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$run/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: $cgroup
failCgroupV1: false
failSwapOn: false
staticPodPath: $run/manifests
podLogsDir: $run/logs/pods
resolvConf: ""
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 5s
maxPods: 250
EOF
  if [ "$1" = standalone ]; then
    cat <<EOF
address: 127.0.0.1
readOnlyPort: 10255
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
EOF
  else
    cat <<EOF
address: $address
tlsCertFile: $pki/kubelet.crt
tlsPrivateKeyFile: $pki/kubelet.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
EOF
  fi
}
