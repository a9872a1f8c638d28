#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
same "past the limit" "result 2" "$("$aliquot" run -q --memory 1GiB -- $driver alloc $((2 * GiB)))"
same "within it" "result 0" "$("$aliquot" run -q --memory 4GiB -- $driver alloc $((2 * GiB)))"
"$aliquot" run -q --name a --memory 2GiB -- $driver hold $GiB &
within 10 used_at_least a $GiB
# A second program of the lease shares the limit, and what it is refused is counted.
same "beside the first" "result 2" "$("$aliquot" run -q --lease a -- $driver alloc $((3 * GiB / 2)))"
same "refusals" 1 "$(lease a gpus.0.refusals)"
