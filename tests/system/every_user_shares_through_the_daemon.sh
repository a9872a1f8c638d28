#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: needs root to act as another user"; exit 77; }
chmod 755 "$work"
mkdir -m 755 "$ALIQUOT_STATE_DIR"
mkdir "$work/his" && chown 65534:65534 "$work/his"
machine
# As installed: a build in somebody's home is not for him to see.
mkdir -p -m 755 "$work/installed/bin"
cp "$aliquot" "$here/driver.py" "$work/installed/bin"
cp -r "$BUILD/lib" "$work/installed"
his=$work/installed/bin/aliquot
his_driver="python3 $work/installed/bin/driver.py"
chmod -R a+rX "$ALIQUOT_STATE_DIR/sim" && chmod a+rw "$ALIQUOT_STATE_DIR/sim/m/socket"
export ALIQUOT_DAEMON_DIR=$work/daemon
# With what the shipped unit lets it do, and no more.
bounds=$(sed -n 's/^CapabilityBoundingSet=//p' "$here/../../deploy/systemd/aliquotd.service" | tr 'A-Z ' 'a-z,' |
  sed 's/cap_/+/g')
start_daemon() {
  setpriv --no-new-privs --bounding-set "-all,$bounds" "$BUILD/bin/aliquotd" --sim m --kubelet no --state-directory "$ALIQUOT_DAEMON_DIR" \
    --cache-directory "$work/cache" 2>>"$work/aliquotd.log" &
  daemon=$!
  within 10 "$aliquot" ps >/dev/null
}
he() { setpriv --reuid 65534 --regid 65534 --clear-groups env ALIQUOT_STATE_DIR="$work/his" "$@"; }
start_daemon
within 10 test -S "$ALIQUOT_DAEMON_DIR/broker.sock"

same "within his share" "result 0" "$(he "$his" run -q --memory 2GiB -- $his_driver alloc $GiB)"
he "$his" run -q --name his --memory 4GiB -- $his_driver hold $GiB &
within 20 used_at_least his $GiB
he "$his" share set his --memory 3GiB >/dev/null
same "his limit" $((3 * GiB)) "$(lease his gpus.0.limit_bytes)"
"$aliquot" run -q --name mine --memory 4GiB -- $driver hold $GiB &
within 20 used_at_least mine $GiB
! grep 'no read-only mount' "$work/aliquotd.log" || fail "what the unit allows does not suffice to guard grants"
! he "$his" share set mine --memory 1GiB 2>/dev/null || fail "he changed another user's lease"
! he "$his" broker --stop 2>/dev/null || fail "he ended the daemon"

# Killed, it loses nothing.
kill -KILL "$daemon"
start_daemon
within 10 used_at_least his $GiB
same "his limit after a new daemon" $((3 * GiB)) "$(lease his gpus.0.limit_bytes)"
kill -TERM "$daemon"
wait "$daemon" || fail "SIGTERM did not end it cleanly"
