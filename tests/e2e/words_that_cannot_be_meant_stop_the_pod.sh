#!/usr/bin/env bash
# A share that cannot be understood is told where people look, and never becomes a whole GPU.
. "$(dirname "$0")/harness.sh"
pod wrong debian 'exec sleep infinity' "{aliquot.dev/memory: '4096'}" 1 | create
told() { kubectl describe pod wrong | grep -q "aliquot.dev/memory: '4096'"; }
within 60 told
running wrong && fail "it runs all the same"
pod large debian 'exec sleep infinity' "{aliquot.dev/memory: '900GiB'}" 1 | create
refused() { kubectl describe pod large | grep -qi "900GiB\|does not fit\|free"; }
within 60 refused
! running large || fail "it runs all the same"
