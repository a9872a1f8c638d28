#!/usr/bin/env bash
# usage: run_client.sh bare|share BIN_DIR VENV NODE[@CUDA] SCRIPT [ARGUMENT...]
# Runs a check with the venv's python on a simulated machine of its own, or in a share of 4 GiB of
# that machine's GPU 0; 77 (skipped) where there is no venv.
set -euo pipefail
where=$1 bin=$2 venv=$3 node=${4%@*} cuda=
[ "$4" = "$node" ] || cuda=${4#*@}
shift 4
if [ ! -x "$venv/bin/python" ]; then
  echo "skipped: no Python clients in $venv (scripts/setup.sh test installs them)"
  exit 77
fi
ALIQUOT_STATE_DIR=$(mktemp -d)
export ALIQUOT_STATE_DIR ALIQUOT_TEST_CUDA=$cuda
finish() {
  "$bin/aliquot" broker --stop >/dev/null 2>&1 || true
  rm -rf "$ALIQUOT_STATE_DIR"
}
trap finish EXIT
run=("$venv/bin/python" "$@")
if [ "$where" = share ]; then
  export ALIQUOT_TEST_SHARE_BYTES=$((4 << 30))
  run=(env -u LD_LIBRARY_PATH "$bin/aliquot" run -q --gpu 0 --memory 4GiB -- "${run[@]}")
fi
# shellcheck disable=SC2086
"$bin/with_machine" "$node" $cuda -- "${run[@]}"
