#!/usr/bin/env bash
# Many processes and threads race on one share with every kind of memory: what adds up to exactly
# the limit is never refused, nothing is above it, the driver's count is not above the charge, and
# all given back is zero. RACE="64 4 200" for the long run.
. "$(dirname "$0")/harness.sh"
read -r processes threads rounds <<<"${RACE:-12 3 40}"
machine
"$aliquot" run -q --name one --memory 8GiB -- $driver hold $MiB &
within 10 used_at_least one $MiB
context=$(($(used one) - MiB))
limit=$((processes * context + processes * threads * 6 * MiB))
coproc "$aliquot" run -q --gpu 1 --name race --memory ${limit}B -- \
  "$BUILD/bin/race_every_kind" "$processes" "$threads" "$rounds"
exec 3<&"${COPROC[0]}" 4>&"${COPROC[1]}"
read -r said <&3
same "first" held "$said"
same "limit" "$limit" "$(lease race gpus.0.limit_bytes)"
[ "$(used race)" -le "$limit" ] || fail "$(used race) of $limit are used"
[ "$(used race)" -gt $((processes * context)) ] || fail "nothing is held"
beyond=$(lease race gpus.0.unaccounted_bytes)
# Rounding inside the driver: each linear piece begins its own granule of 2 MiB at worst.
[ "$beyond" -le $((processes * threads * 4 * 2 * MiB)) ] || fail "$beyond beyond the charge"
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
