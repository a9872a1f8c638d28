# Sourced after harness.sh by tests of compute shares: a machine in slow motion (the host's own
# latencies then weigh little), loads, and what the device's own account says of them.
#
# All at real-time priority where that is allowed: how busy this host is, is not the question.
rt=""
slow_machine() {
  if chrt -r 1 true 2>/dev/null; then rt="chrt -r 1"; fi
  $rt "$aliquot" sim up --node a100x2 --name m --speed "${1:-0.1}" >/dev/null
}
load() {  # LEASE OPTION...: a program that always has work, on GPU 0; kernels of KERNEL us, SECONDS long
  local name=$1
  shift
  $rt "$aliquot" run -q --name "$name" --gpu 0:4GiB "$@" -- "$aliquot" burn --kernel-us "${KERNEL:-500}" --depth 64 \
    --seconds "${SECONDS_LONG:-600}" >"$work/$name.json" 2>"$work/$name.err" &
}
running() { [ "$(lease "$1" gpus.0.compute.launches 2>/dev/null || echo 0)" -gt 10 ]; }
# Percent of the GPU's time that leases had, by the device's own account: use SECONDS LEASE...
use() {
  local seconds=$1
  shift
  "$aliquot" ps --json >"$work/ps"  # before: one may end meanwhile
  python3 "$here/use.py" "$ALIQUOT_STATE_DIR/sim/m/socket" "$seconds" >"$work/use"
  python3 -c 'import json, sys
use = json.load(open(sys.argv[1]))
leases = {lease["name"]: lease for lease in json.load(open(sys.argv[2]))["leases"]}
print(*(round(sum(use.get(str(p["pid"]), 0) for p in leases[name]["processes"]), 2)
        for name in sys.argv[3:]))' "$work/use" "$work/ps" "$@"
}
# The same as parts of what all of them had: a busy host makes the device wait, for each alike.
parts() {
  use "$@" | python3 -c 'figures = [float(word) for word in input().split()]
print(*(round(100 * figure / max(sum(figures), 1), 1) for figure in figures))'
}
near() {  # WHAT EXPECTED FOUND TOLERANCE
  python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - float(sys.argv[2])) > float(sys.argv[3]))' \
    "$2" "$3" "$4" || fail "$1: expected $2 (+-$4), the device says $3"
}
