#!/usr/bin/env bash
# Eight pods assigned to the last GPU, whatever slots kubelet picks.
. "$(dirname "$0")/harness.sh"
gpu=$(aliquot smi --query-gpu=uuid --format=csv,noheader | tail -1)
for i in 1 2 3 4; do bound_pod "last$i" "$gpu" 2 0 'exec sleep infinity'; done
for i in 1 2 3 4; do
  within 60 running "last$i"
  same "the GPU of last$i" "$gpu" "$(fact "$(view "last$i")" uuid)"
done
