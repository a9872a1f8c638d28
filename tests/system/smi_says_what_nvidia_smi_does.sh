#!/usr/bin/env bash
# topo -m, nvlink --status and mig of `aliquot smi`; what topo -m prints is read back by topo --from.
. "$(dirname "$0")/harness.sh"
machine a100x4
smi() { "$aliquot" smi "$@"; }
smi topo -m >"$work/matrix"
same "links of GPU 0" $'GPU0\t X \tNV12\tNV12\tNV12' "$(sed -n 2p "$work/matrix" | cut -f1-5)"
kinds() {  # of topo's JSON; the text tells no rates
  python3 -c 'import json, sys
for link in json.load(sys.stdin)["links"]: print(link["a"], link["b"], link["kind"])'
}
same "read back" "$("$aliquot" topo --json | kinds)" \
  "$("$aliquot" topo --from "$work/matrix" --json | kinds)"
same "links up" "$(printf '12 0')" \
  "$(smi nvlink --status -i 1 | awk '/25 GB\/s/ {up++} /<inactive>/ {down++} END {print up + 0, down + 0}')"
"$aliquot" sim fault m --gpu 1 --link-down 5
same "with link 5 down" $'\t Link 5: <inactive>' "$(smi nvlink -s -i 1 | grep 'Link 5')"
same "profiles" 7 "$(smi mig -lgip -i 0 | grep -c 'MIG [1-7]g')"
same "no MIG" "No MIG-enabled devices found." "$(smi mig -lgi)"
status=0
smi nvlink 2>"$work/usage" || status=$?
same "nothing asked for" "2 1" "$status $(grep -c -- '--status is required' "$work/usage")"
if smi nvlink -s -i 9 2>"$work/refused"; then fail "GPU 9 was shown"; fi
grep -q 'there are GPUs 0 to 3' "$work/refused" || fail "no reason: $(cat "$work/refused")"
same "in a share" $'GPU0\t X ' "$("$aliquot" run -q --gpu 2 --memory 4GiB -- \
  "$aliquot" smi topo -m | sed -n 2p | cut -f1-2)"
