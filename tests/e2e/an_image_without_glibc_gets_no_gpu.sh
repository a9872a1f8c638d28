#!/usr/bin/env bash
# busybox is one static program: it could load neither the driver nor what keeps its share. It is told so.
. "$(dirname "$0")/harness.sh"
pod static busybox 'exec sleep 600' "{aliquot.dev/memory: 1GiB}" 1 | create
told() { kubectl describe pod static | grep -q 'this image has no glibc'; }
within 60 told
! running static || fail "it runs all the same"
pod plain busybox 'exec sleep 600' | create
within 60 running plain
delete static plain
within 20 no_leases
