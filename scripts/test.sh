#!/usr/bin/env bash
# usage: test.sh short|long -- every check of the project, in stages; each prints its seconds.
# short is what CI runs; long leaves nothing out. Stops at the first stage that fails.
set -euo pipefail
mode=${1:?usage: test.sh short|long}
cd "$(dirname "$0")/.."
jobs=$(nproc)
limit_s=${ALIQUOT_TEST_LIMIT_S:-3300}
began=$SECONDS

stage() {
  local name=$1 at=$SECONDS
  shift
  echo "== $name"
  "$@" || { echo "== $name: FAILED after $((SECONDS - at)) s"; exit 1; }
  echo "== $name: $((SECONDS - at)) s"
}

run() {  # preset, then ctest arguments; what passed is not worth a line
  local preset=$1
  shift
  ctest --preset "$preset" -j "$jobs" --no-tests=error "$@" 2>&1 |
    { grep -vE '^ *Start +[0-9]+:|\.\.+ +Passed ' || true; }
}

leave_out='long|system|gpu'
tidy=changed
if [ "$mode" = long ]; then leave_out='system|gpu'; tidy=all; fi

stage setup scripts/setup.sh test
stage "build dev" scripts/build.sh dev
stage "tidy ($tidy)" scripts/lint.sh tidy $tidy
stage "unit tests" run dev -LE "$leave_out"
stage "build asan" scripts/build.sh asan
stage "asan and ubsan" run asan -LE "$leave_out|no_sanitizer"
stage "build tsan" scripts/build.sh tsan threads_tests
stage "tsan" run tsan -L threads -LE "$leave_out"
stage "build release" scripts/build.sh release
stage "system tests" run release -L system -LE "$([ "$mode" = long ] && echo gpu || echo 'long|gpu')"
stage "build fuzzers" scripts/build.sh fuzz fuzzers
stage "fuzzers" scripts/fuzz.sh "$([ "$mode" = long ] && echo 60 || echo 10)"

total=$((SECONDS - began))
echo "== all stages passed in $total s"
if [ "$total" -gt "$limit_s" ] && [ "$mode" = short ]; then
  echo "== that is more than $limit_s s: move something to make test-long"
  exit 1
fi
