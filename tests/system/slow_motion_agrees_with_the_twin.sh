#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
# At a tenth of the speed, where the host's latencies weigh little, programs on the simulated machine
# get what the virtual-time twin of the gate foretells: the same decisions, met by real threads and
# shared memory. Longer, and more cells: shares_of_24_cells.sh.
slow_machine
for cell in ${CELLS:-n2-even/k50us/d64/plain}; do
  $rt "$aliquot" bench shares --sim m --cell "$cell" --seconds "${SECONDS_EACH:-3}" --json >"$work/cell" || [ $? = 2 ]
  if [ "$(field valid <"$work/cell")" != True ]; then
    echo "$cell: this host wakes sleepers too late for the figures to count"; exit 77
  fi
  python3 - "$work/cell" <<'PY' || fail "slow motion and twin differ: $(cat "$work/cell")"
import json, sys
cell = json.load(open(sys.argv[1]))["cells"][0]
twin = cell["twin"]
print(cell["cell"], "error", round(cell["mean_error_points"], 2), "twin", round(twin["mean_error_points"], 2),
      "busy", round(cell["busy_percent"], 1), "twin", round(twin["busy_percent"], 1))
# No tenant further from its twin than both are from the share.
sys.exit(not (cell["mean_error_points"] <= 0.5 and cell["worst_error_points"] <= 2
              and cell["worst_error_points"] + twin["worst_error_points"] <= 1
              and cell["busy_percent"] >= 98
              and cell["largest_lag_ms"] <= cell["allowed_lag_ms"]))
PY
done
