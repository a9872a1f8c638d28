#!/usr/bin/env bash
# `aliquot run` passes on exit status, signals, standard streams and the working directory.
. "$(dirname "$0")/harness.sh"
machine
run() { "$aliquot" run -q --memory 1GiB -- "$@"; }
same "status" 7 "$(run sh -c 'exit 7'; echo $?)"
same "killed by a signal" 137 "$(run sh -c 'kill -KILL $$'; echo $?)"
same "a pipe" HELLO "$(echo hello | run tr a-z A-Z)"
same "directory" "$work" "$(cd "$work" && run pwd)"
same "no such program" 127 "$(run nosuchprogram 2>"$work/err"; echo $?)"
grep -q '^aliquot run: run nosuchprogram: No such file' "$work/err" || fail "it says: $(cat "$work/err")"
same "a file that is no program" 126 "$(run /etc/passwd 2>/dev/null; echo $?)"
"$aliquot" run -q --memory 1GiB -- \
  sh -c 'trap "exit 9" TERM; echo up; while :; do sleep 0.05; done' >"$work/up" &
pid=$!
within 5 grep -q up "$work/up"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
same "TERM" 9 "$status"
"$aliquot" run --memory 1GiB 2>"$work/err" && fail "no command was accepted"
grep -q 'no command' "$work/err" || fail "it does not say that the command is missing"
