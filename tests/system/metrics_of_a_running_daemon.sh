#!/usr/bin/env bash
# What a running daemon serves: promtool finds nothing to say, the counters move and never step back,
# a finished lease's series are gone, a GPU that hangs shows its age and no old values.
. "$(dirname "$0")/harness.sh"
command -v promtool >/dev/null || { echo "skipped: promtool is not installed (package prometheus)"; exit 77; }
machine a100x2
export ALIQUOT_DAEMON_DIR=$work/daemon
url=
start_daemon() {
  "$BUILD/bin/aliquotd" --sim m --kubelet no --state-directory "$ALIQUOT_DAEMON_DIR" --cache-directory \
    "$work/cache" --metrics-address 127.0.0.1:0 "$@" 2>"$work/aliquotd.log" &
  daemon=$!
  within 20 grep -q "metrics at" "$work/aliquotd.log"
  url=http://$(sed -n 's/.*metrics at //p' "$work/aliquotd.log" | head -1)/metrics
}
end_daemon() { kill -"$1" "$daemon" && wait "$daemon" || true; }
scrape() { curl -fsS --max-time 1 "$@" "$url"; }
value() { scrape | awk -v series="$1" 'index($0, series) == 1 {print $NF; found = 1} END {exit !found}'; }
served() { value "$1" >/dev/null; }
more() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$(value "$1")" "$2"; }
of_train() { echo "aliquot_container_gpu_$1{namespace=\"\",pod=\"\",container=\"train\",gpu=\"0\""; }

start_daemon
"$aliquot" run -q --name train --gpu 0 --memory 4GiB --cores 50 -- \
  "$aliquot" burn --memory 1GiB --kernel-us 1000 --seconds 60 >/dev/null &
within 20 more "$(of_train launches_total)" 0
for name in busy_seconds_total memory_granted_byte_seconds_total memory_unused_byte_seconds_total \
  energy_joules_total; do
  within 20 more "$(of_train $name)" 0
done
# Before the lint, so that it sees the series of an XID too.
xid="aliquot_gpu_xid_errors_total{gpu=\"1\""
"$aliquot" sim fault m --gpu 1 --xid 31
within 10 more "$xid" 0
scrape >"$work/text"
promtool check metrics <"$work/text" || fail "promtool has something to say of the default set"
for name in container_gpu_utilization container_gpu_memory_usage container_gpu_memory_limit \
  cnb_gpu_memory_used_bytes cnb_gpu_memory_total_bytes \
  aliquot_container_gpu_{utilization_ratio,share_ratio,memory_used_bytes,memory_limit_bytes} \
  aliquot_container_gpu_{throttled_seconds_total,memory_refusals_total,processes,bypasses_total} \
  aliquot_gpu_{answer_age_seconds,health,memory_total_bytes,memory_used_bytes,memory_granted_bytes} \
  aliquot_gpu_{cores_granted_ratio,leases,utilization_ratio,temperature_celsius,power_watts} \
  aliquot_gpu_{energy_joules_total,nvlinks,nvlinks_up} \
  aliquot_node_{info,registered,inventory_age_seconds,memory_fragmentation_ratio,slot_mismatches_total} \
  aliquot_node_{leaked_leases_total,unleased_processes,podresources_refusals_total}; do
  grep -q "^$name[{ ]" "$work/text" || fail "$name is not served"
done
scrape -D "$work/head" -H 'Accept: application/openmetrics-text; version=1.0.0' >"$work/open"
grep -qi '^content-type: application/openmetrics-text; version=1.0.0' "$work/head" || fail "OpenMetrics was asked for"
same "OpenMetrics' end" "# EOF" "$(tail -1 "$work/open")"
grep -q '^# UNIT aliquot_gpu_power_watts watts$' "$work/open" || fail "OpenMetrics has units"

# Another inventory, another age: it is told of the one that is in force.
within 5 more aliquot_node_inventory_age_seconds 2.9
kill -HUP "$daemon"
younger() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < 2.5)' "$(value aliquot_node_inventory_age_seconds)"; }
within 10 younger

# Killed, it goes on from what was shown.
granted=$(value "$(of_train memory_granted_byte_seconds_total)")
energy=$(value "$(of_train energy_joules_total)")
end_daemon KILL
start_daemon --compat dcgm,hami
more "$(of_train memory_granted_byte_seconds_total)" "$granted" || fail "byte-seconds stepped back"
python3 -c 'import sys; sys.exit(float(sys.argv[1]) < float(sys.argv[2]))' \
  "$(value "$(of_train energy_joules_total)")" "$energy" || fail "energy stepped back"
within 20 served DCGM_FI_DEV_FB_USED  # a new daemon's probes have to answer first
scrape >"$work/text"
status=0
promtool check metrics <"$work/text" >"$work/lint" 2>&1 || status=$?
{ [ $status = 0 ] || [ $status = 3 ]; } || { cat "$work/lint"; fail "the compatible sets do not parse"; }
! grep -q 'aliquot_\|container_gpu\|cnb_' "$work/lint" || { cat "$work/lint"; fail "lint of our own names"; }
for name in DCGM_FI_DEV_FB_USED DCGM_FI_DEV_GPU_UTIL hami_vgpu_memory_limit_bytes; do
  grep -q "^$name{" "$work/text" || fail "$name is not served"
done

# A GPU that hangs: its age grows, its figures go, the other's stay.
"$aliquot" sim fault m --gpu 1 --nvml-hang 600000
silent() { ! value 'aliquot_gpu_power_watts{gpu="1"' >/dev/null; }
within 40 silent
more 'aliquot_gpu_answer_age_seconds{gpu="1"' 10 || fail "the age of a GPU that hangs"
value 'aliquot_gpu_power_watts{gpu="0"' >/dev/null || fail "the other GPU's figures"

"$aliquot" share get train >/dev/null
kill %2 2>/dev/null || true
within 20 gone train
! scrape | grep -q '"train"' || fail "series of a finished lease"
end_daemon TERM
