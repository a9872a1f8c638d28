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

# Unit tests run under the sanitizers; in the release build only what these cannot hold, and, in
# full, everything: what takes long takes longest with a sanitizer.
tidy=changed
release_target=(system_tests)
release_tests=(-L 'system|no_sanitizer' -LE 'long|gpu')
fuzz_s=10
if [ "$mode" = long ]; then
  tidy=all release_target=() release_tests=(-LE gpu) fuzz_s=60
fi

stage setup scripts/setup.sh test
stage "build asan" scripts/build.sh asan
stage "tidy ($tidy)" scripts/lint.sh tidy $tidy build/asan
stage "unit tests with asan and ubsan" run asan -LE 'long|system|gpu|no_sanitizer'
stage "build tsan" scripts/build.sh tsan threads_tests
stage "tests of threads with tsan" run tsan -L threads -LE 'long|system|gpu'
stage "build release" scripts/build.sh release "${release_target[@]}"
stage "system tests" run release "${release_tests[@]}"
stage "build fuzzers" scripts/build.sh fuzz fuzzers
stage "fuzzers" scripts/fuzz.sh "$fuzz_s"

total=$((SECONDS - began))
echo "== all stages passed in $total s"
if [ "$total" -gt "$limit_s" ] && [ "$mode" = short ]; then
  echo "== that is more than $limit_s s: move something to make test-long"
  exit 1
fi
