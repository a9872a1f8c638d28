// `aliquot topo`: how the GPUs of a machine are connected, and which of them belong together.
#pragma once

#include <string>

#include "cli/command.h"
#include "common/result.h"
#include "model/topology.h"
#include "topology/search.h"

namespace aliquot::cli {

void add_topo_command(CLI::App& app, Invocation& invocation);

// A link graph and where it came from: "a.txt", "simulated machine lab".
struct SourcedTopology {
  std::string source;
  bool simulated = false;
  model::NodeTopology node;
};

// The link graph as a table with what its links carry.
std::string topo_table(const SourcedTopology& topology);

// With the best set where `request` is not null. An error is the search's refusal, which begins
// with "not now" or "never".
Result<std::string> topo_json(const SourcedTopology& topology, const topology::Request* request);

// "0,1,2,3" and the reason, as lines.
Result<std::string> topo_answer(const SourcedTopology& topology, const topology::Request& request);

}  // namespace aliquot::cli
