#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/shares.sh"
slow_machine
load batch --cores 50
within 10 running batch
SECONDS_LONG=20 load service --class online
within 10 running service
sleep 2
same "the batch job's state" "paused by online" "$(lease batch gpus.0.compute.state)"
read -r batch service < <(parts 7 batch service)
near "online" 100 "$service" 2
near "offline" 0 "$batch" 2
within 25 gone service
sleep 3  # the release, and a sample period that the two shared
read -r batch < <(use 5 batch)
near "offline afterwards" 100 "$batch" 10
