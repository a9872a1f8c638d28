# Sourced: what the end-to-end tests run on, and where it is kept between runs.
kubernetes_version=1.37.2
etcd_version=3.6.16
containerd_version=2.4.2
go_least=1.26.8 # containerd's own demand
kube_cache=${XDG_CACHE_HOME:-$HOME/.cache}/aliquot/kube
kube_programs="kubelet kube-apiserver kube-controller-manager kube-scheduler kubectl etcd
  containerd containerd-shim-runc-v2 ctr"
