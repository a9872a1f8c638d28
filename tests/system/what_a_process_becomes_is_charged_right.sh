#!/usr/bin/env bash
# fork, exec into a program that never attaches, and a tenant that closes all its descriptors.
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" run -q --name f --memory 8GiB -- $driver fork $GiB &
within 10 used_at_least f $((2 * GiB))
same "attached" 2 "$(lease f attached)"
# Gone within a second; a busy machine may keep the asking from it, but not three times.
zero() { [ "$(used "$1")" = 0 ]; }
soon() { (within 1 zero "$1") >/dev/null; }
for try in 1 2 3; do
  "$aliquot" run -q --name e$try --memory 8GiB -- $driver exec_stranger $GiB "$work/go$try" &
  within 10 used_at_least e$try $GiB
  touch "$work/go$try"
  if soon e$try; then break; fi
  [ $try != 3 ] || fail "what a process held is still charged a second after its exec"
done
"$aliquot" run -q --name c --memory 8GiB -- $driver closefrom $GiB &
within 10 used_at_least c $GiB
sleep 1.5
used_at_least c $GiB || fail "a tenant without descriptors is no longer charged"
# A daemon outlives its run: charged while it lives, and the lease with it.
"$aliquot" run -q --name d --memory 8GiB -- sh -c "setsid $driver hold $GiB 6 >/dev/null & sleep 3"
used_at_least d $GiB || fail "a daemon is not charged when its run has ended"
same "commands" 0 "$(lease d commands)"
within 15 gone d
