// The cluster that `aliquot replay` runs a trace on: from a file, or so many simulated machines.
// Any thread.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.h"
#include "replay/timeline.h"

namespace aliquot::cli {

// `text` is the path of a node list (docs/formats/trace.md), a preset's name, or PRESETxN for N of
// it: "a100x8x4" is four machines of eight GPUs. A machine's host is not part of a preset, so it is
// assumed, and the cluster says so.
Result<replay::Cluster> cluster_of(const std::string& text);

// `cluster.csv` beside the trace; an error that says what to do where there is none.
Result<replay::Cluster> cluster_beside(const std::filesystem::path& trace);

// Gives the nodes the domains that the file says they lie in: Slurm's topology.conf, or objects of
// the Kubernetes API as JSON (HyperNodes; else labels, by the Topology's levels or those that are
// known). Invalid where it names none of the nodes.
Status add_domains(const std::filesystem::path& file, replay::Cluster& cluster);

}  // namespace aliquot::cli
