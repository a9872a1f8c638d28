#!/usr/bin/env bash
# What was exported is charged to its maker, released or not. When the maker ends first, what an
# importer keeps is measured and held against the lease, as are descriptors kept across an exec.
. "$(dirname "$0")/harness.sh"
machine
context_at_most=$((1 * GiB)) size=$((4 * GiB))
held_back() { lease "$1" gpus.0.held_back_bytes 2>/dev/null || echo 0; }
used_at_most() { [ "$(used "$1")" -le "$2" ]; }
# Beyond 256 MiB, 64 MiB a process and a tenth of the charge: docs/security.md.
is_held_back() {
  [ "$(held_back "$1")" -ge $((3 * GiB)) ] && [ "$(held_back "$1")" -le $((size + context_at_most)) ]
}
for way in export_ipc export_descriptor; do
  "$aliquot" run -q --name $way --memory 8GiB -- $driver $way $size "$work/$way" >"$work/said" &
  run=$!
  within 20 grep -q imported "$work/said"
  used_at_least $way $size || fail "$way: exported memory is not charged to its maker"
  same "$way: held back while its maker lives" 0 "$(held_back $way)"
  touch "$work/$way"
  wait $run
  within 10 used_at_most $way $context_at_most
  within 10 is_held_back $way
  same "$way: more than is left" "result 2" \
    "$("$aliquot" run -q --lease $way -- $driver alloc $((5 * GiB)))"
  same "$way: the importer is still there" 1 "$(lease $way attached)"
  kill "$(lease $way processes.0.pid)"
  within 10 gone $way
done
"$aliquot" run -q --name e --memory 8GiB -- $driver exec_with_descriptors $size >"$work/said" &
within 10 grep -q "result 0" "$work/said"
within 10 used_at_most e 0
within 10 is_held_back e
