// Somebody else's metrics in the Prometheus text format, read to be served along with ours.
//
// What is not understood is left out line by line: a foreign exporter costs its own series, never
// the scrape. Leaves to others: how the text is got (dcgm_source.h). Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "node/exposition.h"
#include "node/figures.h"

namespace aliquot::node {

// Families whose name begins with `prefix`. Gauges stay gauges; counters keep the name they have,
// which need not end in _total, and become kUntyped.
std::vector<Family> read_exposition(std::string_view text, std::string_view prefix);

// Adds those of `theirs` whose name is not served yet. Series of a GPU (label UUID) that does not
// answer now are left out: an exporter may go on telling what it last saw.
void merge_exposition(const NodeFigures& figures, std::vector<Family> theirs,
                      std::vector<Family>& families);

}  // namespace aliquot::node
