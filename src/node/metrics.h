// Metrics: the figures of a node as families for a scrape (docs/metrics.md lists them).
//
// The five names that users already have in their dashboards are kept as they are, without units
// in their names; each has a twin that follows the conventions. Pure; any thread.
#pragma once

#include <vector>

#include "node/exposition.h"
#include "node/figures.h"

namespace aliquot::node {

// Which dashboards made for other systems are served as well, under their own names and units.
struct MetricSets {
  bool dcgm = false;
  bool hami = false;
};

std::vector<Family> node_metrics(const NodeFigures& figures, const MetricSets& sets = {});

// Free memory that lies in remainders smaller than a quarter of their GPU, of all free memory; by
// what is granted, not by what is used. 0 where nothing is free.
double memory_fragmentation(const std::vector<GpuFigures>& gpus);

}  // namespace aliquot::node
