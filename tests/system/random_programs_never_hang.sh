#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
# 200 random programs in two shares of one GPU, at the same time.
machine a100x2
"$aliquot" run -q --name a --gpu 0 --memory 4GiB --cores 20 -- "$BUILD/bin/random_work" 1 100 90 >"$work/a" &
"$aliquot" run -q --name b --gpu 0 --memory 4GiB --cores 60 -- "$BUILD/bin/random_work" 101 100 90 >"$work/b" &
wait %1 || fail "the first hundred"
wait %2 || fail "the second hundred"
same "first" "ok 100" "$(cat "$work/a")"
same "second" "ok 100" "$(cat "$work/b")"
