#!/usr/bin/env bash
# What was mistyped is never taken for "all of the GPU"; one line, status 2, naming the word.
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" share get a 2>"$work/err" && fail "a lease that is not there was shown"
grep -q 'aliquot run' "$work/err" || fail "it does not say how a lease comes to be: $(cat "$work/err")"
refused() {  # NAMED ARGUMENT...
  local named=$1 status=0
  shift
  "$aliquot" run "$@" -- true 2>"$work/err" || status=$?
  same "status of: run $*" 2 "$status"
  same "lines of: run $*" 1 "$(wc -l <"$work/err")"
  grep -qF -- "$named" "$work/err" || fail "run $*: does not name $named: $(cat "$work/err")"
}
refused --memory --memory ""
refused --lease --lease ""
refused --gpu --gpu ""
refused --gpus --gpus 0
refused --memroy --memroy 4GiB
refused --lease --lease a --memory 1GiB
refused abc --memory abc
refused abc --cores abc
refused onlin --class onlin
refused --cores --lease a --cores 5
refused --name --name a --lease b
"$aliquot" gpu set 0 --policy fare 2>"$work/err" && fail "there is no policy fare"
grep -q "fair" "$work/err" || fail "it does not say which policies there are: $(cat "$work/err")"
"$aliquot" ps >/dev/full 2>/dev/null && fail "what could not be written was called done"
true
