#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# 30 and 70 percent of what two programs get of one GPU, by the device's own account, in slow motion:
# so that what is compared is the gate, not how busy this host is. How much of the device a busy host
# leaves idle is a figure (`aliquot bench shares`), not a test.
"$aliquot" sim up --node a100x2 --name m --speed 0.1 >/dev/null
"$aliquot" bench shares --sim m --cell n2-30-70/k500us/d64/plain --seconds 1 --json >"$work/cells" || [ $? = 2 ]
python3 - "$work/cells" <<'PY' || fail "shares: $(cat "$work/cells")"
import json, sys
tenants = json.load(open(sys.argv[1]))["cells"][0]["tenants"]
total = sum(tenant["share_percent"] for tenant in tenants)
off = [abs(100 * tenant["share_percent"] / total - tenant["target_percent"]) for tenant in tenants]
sys.exit(not (max(off) < 3 and total > 70))
PY
