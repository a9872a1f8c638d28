#!/usr/bin/env bash
# 4 GiB and 30 % in a real pod, a second pod on the same GPU with the rest; both always have work. All of it
# again after kubelet, the daemon and containerd were restarted.
. "$(dirname "$0")/harness.sh"

check() {  # WHEN POD GIB
  local seen
  seen=$(view "$2") || fail "$1: $2 cannot use its GPU: $seen"
  same "$1: GPUs by NVML in $2" 1 "$(fact "$seen" 'nvml gpus')"
  same "$1: GPUs by the driver in $2" 1 "$(fact "$seen" gpus)"
  same "$1: memory by the driver in $2" $(($3 * GiB)) "$(fact "$seen" total)"
  same "$1: memory by NVML in $2" $(($3 * GiB)) "$(fact "$seen" 'nvml total')"
  same "$1: an allocation within the limit of $2" 0 "$(fact "$seen" 'within the limit')"
  same "$1: an allocation past the limit of $2" 2 "$(fact "$seen" 'past the limit')"
  same "$1: the GPU of $2" "$gpu" "$(fact "$seen" uuid)"
}
# Of the time that both had, by the device's own account: small's part, and what both had of the GPU.
parts() {
  on_node python3 "$here/../system/use.py" /run/aliquot/root/sim/node/socket 5 >"$work/use"
  aliquot ps --json >"$work/ps"
  python3 - "$work/use" "$work/ps" <<'PY'
import json, sys
use, ps = (json.load(open(path)) for path in sys.argv[1:])
small, large = (sum(use.get(str(process["pid"]), 0) for lease in ps["leases"]
                    if lease["name"].startswith(pod + ".") for process in lease["processes"])
                for pod in ("small", "large"))
print("%.1f of %.1f" % (100 * small / max(small + large, 1), small + large))
PY
}
# A host that keeps both waiting shows nothing of how they share: such a sample does not count.
counts() { python3 -c 'import sys; sys.exit(float(sys.argv[1].split(" of ")[1]) < 90)' "$1"; }
check_time() {  # WHEN
  local seen try
  for try in $(seq 6); do
    seen=$(parts)
    ! counts "$seen" || break
  done
  counts "$seen" || fail "$1: the GPU was never busy in $try samples, at last $seen percent"
  python3 -c 'import sys; sys.exit(not 28 <= float(sys.argv[1].split(" of ")[0]) <= 32)' "$seen" ||
    fail "$1: small's percent of the GPU time: $seen, not 30 of 100"
}
check_all() {  # WHEN
  check "$1" small 4
  check "$1" large 16
  check_time "$1"
  same "$1: what large holds goes on" "held" "$(kubectl logs large)"
}

gpu=$(aliquot smi --query-gpu=uuid --format=csv,noheader | head -1)
bound_pod small "$gpu" 4 3000 "exec python3 -u /e2e/burn.py $GiB 500"
bound_pod large "$gpu" 16 7000 "exec python3 -u /e2e/burn.py $GiB 500"
within 60 logs_are small held
within 60 logs_are large held
check_all "at first"

"$cluster" stop kubelet KILL && "$cluster" start kubelet
within 30 kubelet_offers_all
within 30 reachable small
check_all "after a kubelet restart"
"$cluster" stop aliquotd KILL && daemon
within 30 kubelet_offers_all
check_all "after aliquotd was killed"
"$cluster" stop containerd && "$cluster" start containerd
within 30 reachable small
check_all "after a containerd restart"

bound_pod later "$gpu" 4 0 'exec sleep infinity'
within 60 running later
check "a pod made afterwards" later 4
same "leases" 3 "$(leases | wc -l)"
delete small large later
within 20 no_leases
