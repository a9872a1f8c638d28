// How compute shares are shown: a table for `ps` and `share get`, JSON for both and `top`. Pure;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"
#include "format/json.h"

namespace aliquot::cli {

// "idle", "waiting", "running", "banned", "paused by online", "at its cap".
std::string_view compute_state_text(broker::ComputeState state);

// The state, or what outweighs it: "bypasses the gate", "banned 250ms".
std::string compute_remark(const broker::ComputeRow& row);

// One line per lease and GPU, at most 80 columns with a lease's name of 15.
std::string compute_table(const std::vector<broker::LeaseRow>& leases);

// docs/formats/cli_json.md
format::Json compute_json(const broker::UsageRow& usage);

}  // namespace aliquot::cli
