#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
in_share() { "$aliquot" run -q --memory 1GiB -- env "$@" $driver alloc $((2 * GiB)); }
same "LD_PRELOAD unset" "result 2" "$(in_share -u LD_PRELOAD)"
same "LD_LIBRARY_PATH at the machine's own libraries" "result 2" \
  "$(in_share -u LD_PRELOAD LD_LIBRARY_PATH="$ALIQUOT_STATE_DIR/sim/m/lib")"
for dir in /run/aliquot/driver /run/aliquot/driver/lib /run/aliquot/driver/behind; do
  same "LD_LIBRARY_PATH=$dir" "result 2" "$(in_share -u LD_PRELOAD LD_LIBRARY_PATH=$dir)"
done
same "another lease named" "result 2" "$(in_share ALIQUOT_LEASE=/tmp ALIQUOT_SIM=m)"
same "a clean environment" "result 2" "$("$aliquot" run -q --memory 1GiB -- \
  env -i PATH="$PATH" $driver alloc $((2 * GiB)))"
"$aliquot" run -q --memory 1GiB -- sh -c 'echo x >>/run/aliquot/lease/grant' 2>/dev/null &&
  fail "the grant was written"
"$aliquot" run -q --memory 1GiB -- sh -c 'ls /run/aliquot/lease >/dev/null' || fail "no lease shown"
"$aliquot" run -q --memory 1GiB -- "$aliquot" run --memory 8GiB -- true 2>"$work/err" &&
  fail "a lease inside a lease"
grep -q 'inside a lease' "$work/err" || fail "the refusal does not say why"

# Nor do our own tools from inside, or in a second shell of the lease; root cannot undo the mounts.
"$aliquot" run -q --name a --memory 1GiB -- $driver hold $MiB &
within 10 used_at_least a $MiB
refused() {  # COMMAND...
  "$aliquot" run -q --lease a -- "$@" >/dev/null 2>&1 && fail "in a second shell: $*"
  "$aliquot" run -q --memory 1GiB -- "$@" >/dev/null 2>&1 && fail "inside: $*"
  true
}
refused "$aliquot" share set a --memory 8GiB
refused "$aliquot" gpu set 0 --policy burst
refused mount -o remount,rw,bind /run/aliquot/lease
refused umount -l /run/aliquot/lease
refused sh -c 'echo x >>/run/aliquot/lease/grant'
refused sh -c "echo x >>/proc/$$/root$ALIQUOT_STATE_DIR/leases/a/grant"
refused nsenter -t $$ -m true
same "the limit" $GiB "$(lease a gpus.0.limit_bytes)"
