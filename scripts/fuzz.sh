#!/usr/bin/env bash
# usage: fuzz.sh SECONDS -- every fuzzer of the fuzz build for so long; a finding fails and its input
# stays in build/fuzz/findings.
set -euo pipefail
seconds=${1:?usage: fuzz.sh SECONDS}
cd "$(dirname "$0")/../build/fuzz"
mkdir -p findings
for fuzzer in fuzz/*; do
  [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
  name=$(basename "$fuzzer")
  mkdir -p "corpus/$name"
  if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -artifact_prefix=findings/"$name"- "corpus/$name" >"findings/$name.log" 2>&1; then
    tail -30 "findings/$name.log"
    echo "$name: a finding, see build/fuzz/findings"
    exit 1
  fi
  echo "$name: no finding in $seconds s"
done
