#!/usr/bin/env bash
# usage: lint.sh format | tidy changed|all [BUILD_DIR]
# format: clang-format on every C++ file. tidy: clang-tidy on the files changed since BASE
# (environment, default the parent commit) and in the working tree, or on all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:?usage: lint.sh format|tidy} in
  format)
    git ls-files -co --exclude-standard -- '*.cc' '*.h' | xargs -r clang-format-19 --dry-run -Werror
    ;;
  tidy)
    build=${3:-build/dev}
    base=${BASE:-$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)}
    if [ "${2:-changed}" = all ]; then files=$(git ls-files -- 'src/*.cc' 'bench/*.cc' 'tests/*.cc')
    else files=$({ git diff --name-only --diff-filter=d "$base"; git ls-files -o --exclude-standard; } |
      grep -E '^(src|bench|tests)/.*\.cc$' | sort -u) || true; fi
    # Fuzzers are built by the fuzz preset alone and have no entry in this build's commands.
    files=$(for file in $files; do
      if grep -qF "/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
    done)
    tidy() { xargs -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$build" "$@" 2>/dev/null; }
    failed=0
    sed '/_test\.cc$/d' <<<"$files" | tidy || failed=1
    # An ASSERT_TRUE before the access is nothing to that check; and the analyzer follows calls less
    # deep: of a test of 90 lines it took 24 s for what gtest's macros become, and takes half a one.
    sed -n '/_test\.cc$/p' <<<"$files" |
      tidy --checks=-bugprone-unchecked-optional-access \
        --extra-arg={-Xclang,-analyzer-config,-Xclang,mode=shallow} || failed=1
    exit $failed
    ;;
esac
