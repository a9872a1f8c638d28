#!/usr/bin/env bash
# usage: build.sh PRESET [TARGET...] -- configures where needed, builds with all cores and ccache.
set -euo pipefail
preset=${1:?usage: build.sh PRESET [TARGET...]}
shift
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if [ ! -f "build/$preset/build.ninja" ]; then
  echo "build: configuring $preset"
  mkdir -p build
  cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 ||
    { cat "build/$preset.configure.log"; exit 1; }
fi
# shellcheck disable=SC2046
exec cmake --build --preset "$preset" -j "$(nproc)" $([ $# -gt 0 ] && printf -- '--target %s ' "$@") -- --quiet
