#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
on_node env NODE="$NODE" "$BUILD/bin/kube_client_check" --gtest_brief=1
