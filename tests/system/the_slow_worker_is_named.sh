#!/usr/bin/env bash
# Three ranks at work on three GPUs, one of them with locked clocks: the doctor names it, and why.
. "$(dirname "$0")/harness.sh"
machine a100x8
for rank in 0 1 2; do
  RANK=$rank "$aliquot" run -q --gpu $rank --memory 2GiB -- \
    "$aliquot" burn --memory 64MiB --kernel-us 500 --depth 1000 --seconds 100 >/dev/null &
done
three() { [ "$("$aliquot" doctor --sim m --job --report --seconds 0.5 | grep -c '"rank"')" = 3 ]; }
within 40 three
status=0
"$aliquot" doctor --sim m --job --seconds 1 >"$work/even" || status=$?
{ [ $status = 0 ] && grep -q 'none stands out' "$work/even"; } || { cat "$work/even"; fail "alike"; }
lock="import ctypes, sys
library, handle = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
sys.exit(library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(handle))
         or library.nvmlDeviceSetGpuLockedClocks(handle, 600, 600))"
python3 -c "$lock" "$ALIQUOT_STATE_DIR/sim/m/lib/libnvidia-ml.so.1" || fail "clocks cannot be locked"
"$aliquot" doctor --sim m --job --seconds 1 --json >"$work/slow" && fail "a slow worker is status 1"
same "the slow rank" 1 "$(field slow.rank <"$work/slow")"
same "its cause" JOB_CLOCKS_LOW "$(field findings.0.code <"$work/slow")"
# The same from two reports, as of two nodes; step times overrule.
"$aliquot" doctor --sim m --job --report --seconds 0.5 >"$work/all.json"
python3 - "$work" <<'SPLIT'
import json, sys
report = json.load(open(f"{sys.argv[1]}/all.json"))
for name, rows in ("a", report["workers"][:2]), ("b", report["workers"][2:]):
    json.dump(report | {"workers": rows}, open(f"{sys.argv[1]}/{name}.json", "w"))
SPLIT
named() { { "$aliquot" doctor --job "$work/a.json" "$work/b.json" "${@:2}" || true; } | grep -q "$1"; }
named 'rank 1 .* is slow' || fail "from reports"
named 'rank 2 .* is slow' --step 0=0.4,1=0.4,2=0.6 || fail "by step times"
