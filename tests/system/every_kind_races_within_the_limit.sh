#!/usr/bin/env bash
# Many processes and threads race on one share with every kind of memory: what adds up to exactly
# the limit is never refused, nothing is above it at any look, the driver's count of no process is
# above its charge, and all given back is zero. RACE="64 4 200" for the long run.
. "$(dirname "$0")/harness.sh"
read -r processes threads rounds <<<"${RACE:-12 3 100}"
machine
"$aliquot" run -q --name one --memory 8GiB -- $driver hold $MiB &
context=0
has_a_context() { context=$(lease one gpus.0.bytes_by_kind.context) && [ "$context" -gt 0 ]; }
within 10 has_a_context 2>/dev/null
limit=$((processes * context + processes * threads * 6 * MiB))
looks() {  # what is used, time and again until the lease is over
  until "$aliquot" share get race --json; do :; done
  while "$aliquot" share get race --json; do :; done
}
looks 2>/dev/null | sed -n 's/.*"used_bytes": \([0-9]*\).*/\1/p' >"$work/looks" &
looking=$!
coproc LD_LIBRARY_PATH=$ALIQUOT_STATE_DIR/sim/m/lib $driver export_to $((2 * MiB)) 1 \
  "$aliquot" run -q --gpu 1 --name race --memory ${limit}B -- \
  "$BUILD/bin/race_every_kind" "$processes" "$threads" "$rounds"
exec 3<&"${COPROC[0]}" 4>&"${COPROC[1]}"
read -r said <&3
same "first" held "$said"
same "limit" "$limit" "$(lease race gpus.0.limit_bytes)"
[ "$(used race)" -le "$limit" ] || fail "$(used race) of $limit are used"
[ "$(used race)" -gt $((processes * context)) ] || fail "nothing is held"
beyond() {  # the most that the driver counts for a process beyond its charge
  python3 -c 'import json, sys
smi, ps = (json.load(open(file)) for file in sys.argv[1:])
measured = {p["pid"]: p["used_bytes"] for gpu in smi["gpus"] for p in gpu["processes"]}
race = next(lease for lease in ps["leases"] if lease["name"] == "race")
print(max(measured[p["pid"]] - sum(p["held_bytes"]) for p in race["processes"]))' "$@"
}
"$aliquot" smi --sim m --json >"$work/smi"
"$aliquot" ps --json >"$work/ps"
beyond=$(beyond "$work/smi" "$work/ps")
# Rounding inside the driver: each linear piece begins its own granule of 2 MiB at worst.
[ "$beyond" -le $((threads * 4 * 2 * MiB)) ] || fail "$beyond of one process beyond its charge"
echo >&4
read -r said <&3
same "then" freed "$said"
same "attached" "$processes" "$(lease race attached)"
same "used when all is given back" 0 "$(used race)"
echo >&4
read -r said <&3
same "of what fits" "refused 0" "$said"
read -r said <&3
same "wrong answers" "errors 0" "$said"
wait "$looking"
[ "$(sort -u "$work/looks" | wc -l)" -ge 5 ] || fail "the race was not seen: $(uniq -c "$work/looks")"
most=$(sort -n "$work/looks" | tail -1)
[ "$most" -le "$limit" ] || fail "$most of $limit were used at one look"
