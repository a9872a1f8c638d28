#!/usr/bin/env bash
# Host and peer links of a simulated machine: measured near what its model says, and below the ceiling.
. "$(dirname "$0")/harness.sh"
machine a100x2
"$aliquot" topo --sim m --measure | grep -q simulated || fail "simulated figures must say so"
"$aliquot" topo --sim m --measure --json >"$work/measure.json"
python3 - "$work/measure.json" <<'CHECK'
import json, sys
measure = json.load(open(sys.argv[1]))
assert measure["simulated"] and len(measure["hosts"]) == 2 and len(measure["peers"]) == 2, measure
for host in measure["hosts"]:
    for way in ("to_device", "from_device"):
        assert 0.5 < host[way]["mb_s"] / host["ceiling_mb_s"] <= 1.01, host
        assert 0 < host[way]["latency_ns"] < 100_000, host
for peer in measure["peers"]:
    assert 0.5 < peer["measured"]["mb_s"] / peer["ceiling_mb_s"] <= 1.1, peer
CHECK
# In a share: what a program there would meet.
"$aliquot" run -q --memory 1GiB -- "$aliquot" topo --measure | grep -q "GPU" || fail "in a share"
