#!/usr/bin/env bash
# usage: fuzz.sh SECONDS [FUZZER...] -- every fuzzer of the fuzz build (or those named) for so long,
# one a core; a finding fails and its input stays in build/fuzz/findings.
set -euo pipefail
seconds=${1:?usage: fuzz.sh SECONDS [FUZZER...]}
shift
cd "$(dirname "$0")/../build/fuzz"
mkdir -p findings

one() {
  local name=$1 seconds=$2
  mkdir -p "corpus/$name"
  if ! "fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -artifact_prefix=findings/"$name"- "corpus/$name" >"findings/$name.log" 2>&1; then
    tail -30 "findings/$name.log"
    echo "$name: a finding, see build/fuzz/findings"
    return 255  # xargs starts no more
  fi
  echo "$name: no finding in $seconds s"
}
export -f one

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(find fuzz -maxdepth 1 -type f -executable -printf '%f\n' | sort)
printf '%s\n' "${names[@]}" | xargs -r -P "$(nproc)" -I NAME bash -c "set -euo pipefail; one NAME $seconds"
