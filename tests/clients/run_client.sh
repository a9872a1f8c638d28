#!/usr/bin/env bash
# usage: run_client.sh WITH_MACHINE VENV NODE SCRIPT [ARGUMENT...]
# Runs a check with the venv's python on a simulated machine; 77 (skipped) where there is no venv.
set -euo pipefail
with_machine=$1 venv=$2 node=$3
shift 3
if [ ! -x "$venv/bin/python" ]; then
  echo "skipped: no Python clients in $venv (scripts/setup.sh test installs them)"
  exit 77
fi
ALIQUOT_STATE_DIR=$(mktemp -d)
export ALIQUOT_STATE_DIR
trap 'rm -rf "$ALIQUOT_STATE_DIR"' EXIT
"$with_machine" "$node" -- "$venv/bin/python" "$@"
