// The same figures under the names, labels and units of dcgm-exporter and HAMi, for dashboards
// that were made for those. Pure; any thread.
#pragma once

#include <vector>

#include "node/exposition.h"
#include "node/figures.h"

namespace aliquot::node {

void add_dcgm_metrics(const NodeFigures& figures, std::vector<Family>& families);
void add_hami_metrics(const NodeFigures& figures, std::vector<Family>& families);

}  // namespace aliquot::node
