#!/usr/bin/env bash
# usage: certificates.sh DIR NODE NODE_ADDRESS -- one CA, the servers' and clients' certificates, the
# key of service accounts, a token file and a kubeconfig for each client, all in DIR, for 30 days.
set -euo pipefail
cd "${1:?usage: certificates.sh DIR NODE NODE_ADDRESS}"
node=$2
address=$3
umask 077

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key" 2>/dev/null; }
certificate() { # NAME SUBJECT serverAuth|clientAuth [ALTERNATIVE_NAMES]
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  {
    echo "extendedKeyUsage=$3"
    echo keyUsage=digitalSignature
    [ -z "${4:-}" ] || echo "subjectAltName=$4"
  } >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
    -extfile "$1.ext" -out "$1.crt" 2>/dev/null
  rm "$1.csr" "$1.ext"
}
kubeconfig() { # NAME: its certificate's user on the API server of this machine
  cat >"$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $PWD/ca.crt}}]
users: [{name: $1, user: {client-certificate: $PWD/$1.crt, client-key: $PWD/$1.key}}]
contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
current-context: e2e
EOF
}

key ca
openssl req -x509 -new -key ca.key -subj /CN=aliquot-e2e -days 30 -out ca.crt \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
certificate apiserver /CN=kube-apiserver serverAuth \
  "IP:127.0.0.1,IP:10.0.0.1,IP:$address,DNS:localhost,DNS:kubernetes.default.svc"
certificate kubelet "/CN=$node" serverAuth "IP:127.0.0.1,IP:$address,DNS:localhost,DNS:$node"
certificate apiserver-kubelet /O=system:masters/CN=apiserver-kubelet-client clientAuth
certificate admin /O=system:masters/CN=admin clientAuth
certificate controller-manager /CN=system:kube-controller-manager clientAuth
certificate scheduler /CN=system:kube-scheduler clientAuth
certificate node "/O=system:nodes/CN=system:node:$node" clientAuth
for client in admin controller-manager scheduler node; do kubeconfig $client; done
openssl genrsa -out sa.key 2048 2>/dev/null
echo 'admin-token,admin,1,"system:masters"' >tokens.csv
