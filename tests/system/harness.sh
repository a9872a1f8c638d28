# Sourced by the system tests: a state directory and a simulated machine of its own for each, all
# gone at the end. Expects BUILD (the build directory) in the environment.
set -euo pipefail
aliquot=$BUILD/bin/aliquot
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d /tmp/aliquot-test.XXXXXX)
export ALIQUOT_STATE_DIR=$work/state
unset ALIQUOT_SIM ALIQUOT_LEASE LD_PRELOAD LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES

finish() {
  local status=$?
  trap - EXIT
  # TERM, which `aliquot run` passes on: killed, it would leave its command running.
  jobs -p | xargs -r kill -TERM 2>/dev/null || true
  wait 2>/dev/null || true
  [ "$status" = 0 ] || { echo "-- broker's log:"; tail -20 "$ALIQUOT_STATE_DIR/broker.log" 2>/dev/null; } || true
  "$aliquot" sim down --all >/dev/null 2>&1 || true
  "$aliquot" broker --stop >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

fail() { echo "FAILED: $*"; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"; }  # WHAT EXPECTED FOUND
within() {  # SECONDS COMMAND...: until it succeeds
  local end=$(($(date +%s%N) + $1 * 1000000000))
  shift
  until "$@"; do
    [ "$(date +%s%N)" -lt "$end" ] || fail "not in time: $*"
    sleep 0.02
  done
}
machine() { "$aliquot" sim up --node "${1:-a100x2}" --name m >/dev/null; }
field() { python3 -c 'import json, sys
d = json.load(sys.stdin)
for key in sys.argv[1].split("."): d = d[int(key) if isinstance(d, list) else key]
print(d)' "$1"; }
lease() { "$aliquot" share get "$1" --json | field "leases.0.$2"; }  # LEASE FIELD
used() { lease "$1" gpus.0.used_bytes 2>/dev/null || echo 0; }
used_at_least() { [ "$(used "$1")" -ge "$2" ]; }
# The one of this test: others run beside it.
broker() {
  local pid
  for pid in $(pgrep -f "$aliquot broker"); do
    if grep -qzxF "ALIQUOT_STATE_DIR=$ALIQUOT_STATE_DIR" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; return; fi
  done
}
gone() { ! "$aliquot" share get "$1" >/dev/null 2>&1; }
driver="python3 $here/driver.py"  # small driver-API programs, no bindings needed
GiB=$((1 << 30)) MiB=$((1 << 20))
