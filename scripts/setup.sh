#!/usr/bin/env bash
# usage: setup.sh demo|test|e2e -- installs what is missing: Debian packages from apt-packages.txt
# (those for demo always), and the pinned Python clients into build/clients/venv. Prints a command
# before it uses sudo. demo goes on without PyPI and says so; the others fail there.
set -euo pipefail
level=${1:?usage: setup.sh demo|test|e2e}
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../build/clients/venv

wanted=$(awk -v level="$level" '!/^#/ && NF == 2 && $2 ~ "(^|,)(demo|" level ")(,|$)" {print $1}' \
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

if ! "$here/client_venv.sh" "$here/requirements.txt" "$venv"; then
  echo "setup: the Python clients could not be installed (PyPI does not answer?)" >&2
  [ "$level" = demo ] || exit 1
fi
