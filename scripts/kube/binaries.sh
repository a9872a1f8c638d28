#!/usr/bin/env bash
# usage: binaries.sh -- prints the directory that holds kubelet, the control plane, etcd and
# containerd. KUBE_BIN=DIR names one to use as it is; else they are built from their published Go
# modules, once, and kept outside the tree (versions.sh). About 8 minutes cold on two cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
say() { echo "kube: $*" >&2; }
refuse() { say "$*"; exit 1; }

lacking_in() { # DIR: the programs that are not there
  local program
  for program in $kube_programs; do [ -x "$1/$program" ] || printf ' %s' "$program"; done
}

if [ -n "${KUBE_BIN:-}" ]; then
  lacking=$(lacking_in "$KUBE_BIN")
  [ -z "$lacking" ] || refuse "KUBE_BIN=$KUBE_BIN lacks:$lacking"
  cd "$KUBE_BIN" && exec pwd
fi

name=k$kubernetes_version-e$etcd_version-c$containerd_version
bin=$kube_cache/$name
mkdir -p "$kube_cache"
exec 9>"$kube_cache/.lock"
flock -w 3000 9 || refuse "another build holds $kube_cache/.lock for 50 minutes: end it"
if [ -z "$(lacking_in "$bin")" ]; then
  echo "$bin"
  exit 0
fi

# From here on: a build. The cache is written beside its place and renamed, never half there.
command -v go >/dev/null ||
  refuse "go is not installed: install Go $go_least or newer, or set KUBE_BIN=DIR to a directory with: ${kube_programs//$'\n'/}"
found=$(GOTOOLCHAIN=local go env GOVERSION)
printf '%s\n' "go$go_least" "$found" | sort -VC ||
  refuse "Go $go_least or newer is needed, this is $found: install it, or set KUBE_BIN=DIR"
work=$(mktemp -d "$kube_cache/.building.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir "$work/bin"
export CGO_ENABLED=0 GOFLAGS=-trimpath GOTOOLCHAIN=local

quietly() { # COMMAND...: its output only when it fails
  "$@" >"$work/log" 2>&1 && return
  tail -5 "$work/log" >&2
  if grep -qE 'dial tcp|no such host|i/o timeout|TLS handshake|connection refused' "$work/log"; then
    refuse "the Go module proxy ($(go env GOPROXY)) does not answer: the network is needed once, or KUBE_BIN=DIR"
  fi
  refuse "failed: $*"
}

build_kubernetes() {
  say "building Kubernetes $kubernetes_version (some minutes)"
  mkdir "$work/kubernetes" && cd "$work/kubernetes"
  local staging=v0.${kubernetes_version#1.} own_mod flags= package
  quietly go mod download -json "k8s.io/kubernetes@v$kubernetes_version"
  own_mod=$(sed -n 's/.*"GoMod": "\(.*\)",/\1/p' "$work/log")
  # Its staging modules are published apart; which ones there are, its own go.mod says.
  {
    echo "module aliquot.dev/e2e"
    grep '^go ' "$own_mod"
    echo "require k8s.io/kubernetes v$kubernetes_version"
    sed -n 's#^\s*\(k8s.io/[a-z-]*\) => ./staging/.*#\1#p' "$own_mod" |
      while read -r module; do echo "replace $module => $module $staging"; done
  } >go.mod
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=v$kubernetes_version -X $package.gitMajor=1"
    flags+=" -X $package.gitMinor=$(cut -d. -f2 <<<"$kubernetes_version")"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=modules"
    flags+=" -X $package.buildDate=2026-01-01T00:00:00Z"
  done
  local commands=k8s.io/kubernetes/cmd
  set -- $commands/kube-apiserver $commands/kube-controller-manager $commands/kube-scheduler \
    $commands/kubelet $commands/kubectl
  quietly go get -tool "$@"
  quietly go build -ldflags "-s -w $flags" -o "$work/bin/" "$@"
}

build_etcd() {
  say "building etcd $etcd_version"
  mkdir "$work/etcd" && cd "$work/etcd"
  printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' >main.go
  quietly go mod init aliquot.dev/etcd
  quietly go get "go.etcd.io/etcd/server/v3@v$etcd_version"
  quietly go mod tidy
  quietly go build -ldflags '-s -w' -o "$work/bin/etcd" .
}

build_containerd() {
  say "building containerd $containerd_version"
  mkdir "$work/containerd" && cd "$work/containerd"
  local root=github.com/containerd/containerd/v2
  quietly go mod init aliquot.dev/containerd
  quietly go get -tool $root/cmd/containerd@v$containerd_version \
    $root/cmd/containerd-shim-runc-v2@v$containerd_version $root/cmd/ctr@v$containerd_version
  quietly go build -tags 'no_btrfs no_devmapper no_zfs' \
    -ldflags "-s -w -X $root/version.Version=$containerd_version" -o "$work/bin/" \
    $root/cmd/containerd $root/cmd/containerd-shim-runc-v2 $root/cmd/ctr
}

build_kubernetes
build_etcd
build_containerd
rm -rf "$bin"
mv "$work/bin" "$bin"
echo "$bin"
