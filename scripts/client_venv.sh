#!/usr/bin/env bash
# usage: client_venv.sh LIST VENV -- makes a venv of Debian's own python3, whatever else is first on
# PATH, with the pinned clients of the list; rebuilt when the list changes.
set -euo pipefail
list=$1 venv=$2
cmp -s "$list" "$venv/requirements.txt" && exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if { rm -rf "$venv" && /usr/bin/python3 -m venv "$venv" &&
     "$venv/bin/pip" install -q --disable-pip-version-check --retries 6 --timeout 60 \
       -r "$list"; } >"$log" 2>&1; then
  cp "$list" "$venv/requirements.txt"
else
  tail -3 "$log" >&2
  exit 1
fi
