#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine a100x2
"$aliquot" sim fault m --gpu 0 --lost
same "a share of the other" "result 0" "$("$aliquot" run -q --memory 4GiB -- $driver alloc $GiB)"
same "the other's total" "[N/A] 81920" "$("$aliquot" smi --query-gpu=memory.total \
  --format=csv,noheader,nounits | paste -sd' ')"
"$aliquot" smi | grep -q '^GPU 0: .*lost' || fail "smi does not say what is wrong with GPU 0"
# The same of one about which NVML hangs: named in time, whatever it is asked for.
"$aliquot" sim fault m --gpu 0 --lift
"$aliquot" sim fault m --gpu 0 --nvml-hang 600000
shown=$(timeout 20 "$aliquot" smi --query-gpu=memory.total --format=csv,noheader,nounits | paste -sd' ')
same "while GPU 0 hangs" "[N/A] 81920" "$shown"
timeout 20 "$aliquot" smi | grep -q '^GPU 0: NVML does not answer' || fail "smi does not say that GPU 0 hangs"
"$aliquot" sim fault m --gpu 0 --lift
"$aliquot" sim fault m --gpu 0 --lost
"$aliquot" run -q --gpu 0 --memory 1GiB -- true 2>/dev/null && fail "the lost GPU was granted"
true
