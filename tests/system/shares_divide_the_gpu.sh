#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# 30 and 70 percent of one GPU's time, by the device's own account, in slow motion: so that what is
# compared is the gate, not how busy this host is. One cell of the 24 of `make test-long`.
"$aliquot" sim up --node a100x2 --name m --speed 0.1 >/dev/null
"$aliquot" bench shares --sim m --cell n2-30-70/k500us/d64/plain --seconds 1 --json >"$work/cells" || [ $? = 2 ]
if [ "$(field valid <"$work/cells")" != True ]; then
  echo "this host wakes sleepers too late for the figures to count:"; cat "$work/cells"; exit 77
fi
python3 - "$work/cells" <<'PY' || fail "shares: $(cat "$work/cells")"
import json, sys
cells = json.load(open(sys.argv[1]))
# A second of the machine's time: a tenth of what the figures of the issue are about.
sys.exit(not (cells["worst_error_points"] < 3 and cells["least_busy_percent"] > 95))
PY
