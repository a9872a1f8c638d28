#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine a100x2
"$aliquot" sim fault m --gpu 0 --lost
same "a share of the other" "result 0" "$("$aliquot" run -q --memory 4GiB -- $driver alloc $GiB)"
same "the other's total" "[N/A] 81920" "$("$aliquot" smi --query-gpu=memory.total \
  --format=csv,noheader,nounits | paste -sd' ')"
"$aliquot" smi | grep -q '^GPU 0: .*lost' || fail "smi does not say what is wrong with GPU 0"
"$aliquot" run -q --gpu 0 --memory 1GiB -- true 2>/dev/null && fail "the lost GPU was granted"
true
