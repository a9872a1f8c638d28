// NodeFigures from what the daemon holds: the bridge between its parts and a scrape. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"
#include "node/bound_container.h"
#include "node/figures.h"
#include "node/late_binding.h"
#include "node/node_health.h"
#include "node/probe_pool.h"
#include "node/unleased.h"
#include "node/usage_meter.h"

namespace aliquot::node {

struct FiguresSources {
  std::string node, driver_version;
  bool simulated = false, registered = false;
  std::vector<KnownGpu> gpus;  // in PCI order
  std::vector<LatestReading> readings;
  std::vector<NodeHealth::State> health;
  std::vector<broker::LeaseRow> leases;
  std::map<UsageMeter::Key, UsageTotals> usage;
  std::vector<BoundContainer> containers;
  BindingCounters counters;
  std::vector<UnleasedProcess> unleased;
  double inventory_age_s = 0;
  Nanoseconds now = 0;  // on the daemon's clock, as the readings' times
  double now_unix_s = 0;
};

// A reading older than 15 s gives no figures of its GPU, only its age.
NodeFigures figures_of(const FiguresSources& sources);

}  // namespace aliquot::node
