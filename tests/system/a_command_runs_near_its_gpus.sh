#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# --numa near: a command's CPUs are those of its GPU's node that there are here; what it cannot have is said.
machine a100x8
cpus() { "$aliquot" run -q "$@" --memory 1GiB -- python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'; }
of_node() {
  python3 - "$ALIQUOT_STATE_DIR/sim/m/sys/devices/system/node/node$1/cpulist" <<'PY'
import os, sys
cpus = set()
for part in open(sys.argv[1]).read().strip().split(","):
    first, _, last = part.partition("-")
    cpus |= set(range(int(first), int(last or first) + 1))
print(*sorted(cpus & os.sched_getaffinity(0)))
PY
}
same "CPUs near GPU 0" "$(of_node 0)" "$(cpus --gpu 0 --numa near)"
same "CPUs without it" "$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')" "$(cpus --gpu 0)"
if [ -z "$(of_node 1)" ]; then  # this machine is smaller than the simulated one
  if cpus --gpu 7 --numa near 2>"$work/refused"; then fail "it ran where there are no CPUs"; fi
  grep -q 'NUMA node 1: .*run with --numa off' "$work/refused" || fail "no reason: $(cat "$work/refused")"
fi
