#!/usr/bin/env bash
# usage: setup.sh demo|test|e2e -- installs what is missing: Debian packages from apt-packages.txt
# (those for demo always), and the pinned Python clients into build/clients/venv. Prints a command
# before it uses sudo. demo goes on without PyPI and says so; the others fail there.
set -euo pipefail
level=${1:?usage: setup.sh demo|test|e2e}
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../build/clients/venv

wanted=$(awk -v level="$level" '!/^#/ && NF == 2 && ($2 == level || $2 == "demo") {print $1}' \
  "$here/apt-packages.txt")
missing=()
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
    missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  refuse() {
    echo "setup: $1. Missing Debian packages: ${missing[*]}" >&2
    exit 1
  }
  command -v apt-get >/dev/null || refuse "no apt-get on this machine"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || refuse "not root and no sudo"
    as_root=(sudo)
    echo "setup: running: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
  else
    echo "setup: installing ${missing[*]}"
  fi
  log=$(mktemp)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
    { tail -15 "$log" >&2; rm -f "$log"; refuse "apt-get failed"; }
  rm -f "$log"
fi

# The venv is made of Debian's own python3, whatever else is first on PATH, and rebuilt when the
# list of clients changes.
stamp=$venv/requirements.txt
if ! cmp -s "$here/requirements.txt" "$stamp"; then
  log=$(mktemp)
  if { rm -rf "$venv" && /usr/bin/python3 -m venv "$venv" &&
       "$venv/bin/pip" install -q --disable-pip-version-check --retries 2 --timeout 30 \
         -r "$here/requirements.txt"; } >"$log" 2>&1; then
    cp "$here/requirements.txt" "$stamp"
  else
    tail -3 "$log" >&2
    echo "setup: the Python clients could not be installed (PyPI does not answer?)" >&2
    rm -f "$log"
    [ "$level" = demo ] || exit 1
    exit 0
  fi
  rm -f "$log"
fi
