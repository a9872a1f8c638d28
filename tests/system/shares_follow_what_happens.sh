#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# In slow motion: after a tenant has come, left or been resized, everybody's service stays within two
# windows and three kernels of the share that the broker then gives.
if chrt -r 1 true 2>/dev/null; then rt="chrt -r 1"; else rt=""; fi  # a busy host is not the question
$rt "$aliquot" sim up --node a100x2 --name m --speed 0.1 >/dev/null
for event in ${EVENTS:-arrival leave resize}; do
  for cell in ${CELLS:-n4-even/k500us/d64/plain}; do
    $rt "$aliquot" bench shares --sim m --cell "$cell" --event "$event" --seconds "${SECONDS_EACH:-0.6}" \
      --json >"$work/cell" || [ $? = 2 ]
    if [ "$(field valid <"$work/cell")" != True ]; then
      echo "$event: this host wakes sleepers too late for the figures to count"; exit 77
    fi
    python3 - "$event" "$work/cell" <<'PY' || fail "$event: $(cat "$work/cell")"
import json, sys
cell = json.load(open(sys.argv[2]))["cells"][0]
targets = [tenant["target_percent"] for tenant in cell["tenants"]]
print(sys.argv[1], cell["cell"], "targets", [round(target, 1) for target in targets],
      "lag", round(cell["largest_lag_ms"], 1), "of", cell["allowed_lag_ms"])
even = max(targets) - min(targets) < 0.1
sys.exit(not (cell["largest_lag_ms"] <= cell["allowed_lag_ms"] and even == (sys.argv[1] != "resize")
              and len(targets) == (3 if sys.argv[1] == "leave" else 4)))
PY
  done
done
