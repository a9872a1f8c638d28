#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# The 24 named cells, ten seconds of the machine's time each, at a tenth of the speed: 40 minutes.
"$aliquot" sim up --node a100x2 --name m --speed 0.1 >/dev/null
"$aliquot" bench shares --sim m --set slow --seconds "${SECONDS_EACH:-10}" --json >"$work/cells" || [ $? = 2 ]
cat "$work/cells"
if [ "$(field valid <"$work/cells")" != True ]; then
  echo "this host wakes sleepers too late for the figures to count"; exit 77
fi
python3 - "$work/cells" <<'PY' || fail "the figures of docs/compute-shares.md"
import json, sys
cells = json.load(open(sys.argv[1]))
off = [cell["cell"] for cell in cells["cells"]
       if cell["busy_percent"] < cell["twin"]["busy_percent"] - 1.5
       or cell["mean_error_points"] > cell["twin"]["mean_error_points"] + 1]
late = [cell["cell"] for cell in cells["cells"] if cell["largest_lag_ms"] > cell["allowed_lag_ms"]]
print("cells that differ from the twin:", off, "that lag too far:", late)
sys.exit(not (cells["mean_error_points"] <= 0.5 and cells["worst_error_points"] <= 2
              and cells["least_busy_percent"] >= 98 and not off and not late))
PY
