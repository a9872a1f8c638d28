#!/usr/bin/env bash
# A state directory deeper than a socket's address, a share that says it is simulated, and a machine
# that goes while a lease is on it.
. "$(dirname "$0")/harness.sh"
export ALIQUOT_STATE_DIR=$work/$(printf 'deep%.0s' $(seq 30))/state
mkdir -p "$(dirname "$ALIQUOT_STATE_DIR")"
machine
"$aliquot" run -q --memory 1GiB -- "$aliquot" topo >"$work/topo"
grep -q 'share of a simulated machine: 1 GPU' "$work/topo" || fail "topo in a share: $(cat "$work/topo")"
"$aliquot" run -q --name held --memory 1GiB -- sleep 60 &
within 10 "$aliquot" share get held >/dev/null
"$aliquot" sim down m 2>"$work/err"
grep -q 'lease held still uses machine m' "$work/err" || fail "sim down said: $(cat "$work/err")"
same "machines" m "$(machine && "$aliquot" completion names machines)"
"$aliquot" completion names presets | grep -qx a100x8 || fail "no presets to complete"
