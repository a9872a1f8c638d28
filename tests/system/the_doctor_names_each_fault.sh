#!/usr/bin/env bash
# Every fault that can be injected is named, alone and in pairs; nothing is named on a sound machine.
. "$(dirname "$0")/harness.sh"
for node in a100x8 dgx1-v100 h100x8 t4x1; do
  "$aliquot" sim up --node $node --name sound >/dev/null
  "$aliquot" doctor --sim sound | grep -q ': nothing found$' || {
    "$aliquot" doctor --sim sound
    fail "$node is sound"
  }
  "$aliquot" sim down sound >/dev/null
done
# This model's NICs are all on one socket: far from half of its GPUs, and nothing else.
"$aliquot" sim up --node l40sx4 --name lopsided >/dev/null
same "l40sx4" NUMA_FAR_NIC "$("$aliquot" doctor --sim lopsided --json |
  python3 -c 'import json, sys; print(*{f["code"] for f in json.load(sys.stdin)["findings"]})')"
"$aliquot" sim down lopsided >/dev/null
python3 "$here/doctor_faults.py" "$aliquot" "${DOCTOR_PAIRS:-12}"
