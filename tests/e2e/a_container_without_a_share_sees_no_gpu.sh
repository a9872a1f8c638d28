#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
pod none debian 'ls /dev | grep -c nvidia; python3 /e2e/total.py' | create
within 60 phase_is none Failed
kubectl logs none | grep -q '^0$' || fail "there are device nodes: $(kubectl logs none)"
kubectl logs none | grep -q 'cannot open shared object\|no GPU' || fail "it found a driver: $(kubectl logs none)"
