// Reads and prints what `nvidia-smi topo -m` prints, and plain weight matrices.
//
// Leaves to others: choosing GPUs (room topology) and asking a driver (topology_nvml.h). The
// accepted text is docs/formats/topology_text.md. Nothing is half-read: a text gives the whole
// topology or an error "where:line:column: what". Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "model/topology.h"

namespace aliquot::inventory {

// What the text does not tell; 0: not known either (model/topology.h says what is assumed then).
struct TopologyTextOptions {
  unsigned nvlink_generation = 0;
  unsigned pcie_generation = 0;
};

// `where` names the text in errors, for example the file.
Result<model::NodeTopology> parse_topology_text(std::string_view text, std::string_view where,
                                                const TopologyTextOptions& options = {});

// The tab form, with all columns; what it prints reads back as the same devices and links.
std::string print_topology_text(const model::NodeTopology& node);

// A square of numbers, GB/s one way, rows on lines or parted by "/": "0 300 / 300 0". A latency in
// nanoseconds may follow: "300@1500". The diagonal is 0 or X.
Result<model::NodeTopology> parse_weight_matrix(std::string_view text, std::string_view where);
std::string print_weight_matrix(const model::NodeTopology& node);

// Either of the two, told apart by the first word.
Result<model::NodeTopology> parse_topology(std::string_view text, std::string_view where,
                                           const TopologyTextOptions& options = {});

}  // namespace aliquot::inventory
