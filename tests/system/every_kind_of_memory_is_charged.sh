#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
machine
# What is taken shows at once, what is given back is gone, and a released handle of mapped memory is
# neither. Sizes the driver chooses are compared by the program: 1 is "as it should be".
same "each kind" "linear 0 1049088
linear-free 0 0
pitch 0 1
pitch-free 0 0
managed 0 5242880
managed-free 0 0
pool 0 1
pool-trimmed 0 0
physical 0 67108864
physical-mapped 0 67108864
physical-released 0 67108864
physical-unmapped 0 0
array 0 1
array-destroyed 0 0
context 0 1
context-released 0 0" "$("$aliquot" run -q --memory 4GiB -- "$BUILD/bin/memory_kinds")"
