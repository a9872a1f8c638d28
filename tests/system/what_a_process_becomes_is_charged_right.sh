#!/usr/bin/env bash
# fork, exec into a program that never attaches, and a tenant that closes all its descriptors.
. "$(dirname "$0")/harness.sh"
machine
"$aliquot" run -q --name f --memory 8GiB -- $driver fork $GiB &
within 10 used_at_least f $((2 * GiB))
same "attached" 2 "$(lease f attached)"
"$aliquot" run -q --name e --memory 8GiB -- $driver exec_stranger $GiB &
within 10 used_at_least e $GiB
zero() { [ "$(used "$1")" = 0 ]; }
within 3 zero e
"$aliquot" run -q --name c --memory 8GiB -- $driver closefrom $GiB &
within 10 used_at_least c $GiB
sleep 1.5
used_at_least c $GiB || fail "a tenant without descriptors is no longer charged"
# A daemon outlives its run: charged while it lives, and the lease with it.
"$aliquot" run -q --name d --memory 8GiB -- sh -c "setsid $driver hold $GiB 6 >/dev/null & sleep 3"
used_at_least d $GiB || fail "a daemon is not charged when its run has ended"
same "commands" 0 "$(lease d commands)"
within 15 gone d
