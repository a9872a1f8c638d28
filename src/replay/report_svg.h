// Plots as inline SVG: lines over time, and a map of how full each node was. They carry their own
// text and colours, and load nothing. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/timeline.h"

namespace aliquot::replay {

struct Line {
  std::string name;
  std::vector<std::pair<std::int64_t, double>> points;  // along, value; holds until the next
};

// What the first of a point's numbers counts.
enum class PlotAlong : std::uint8_t { kSeconds, kPercent };

// `most` is the top of the value axis; 0: the largest value.
std::string line_plot(std::string_view title, const std::vector<Line>& lines, double most,
                      PlotAlong along = PlotAlong::kSeconds);

// Rows are the nodes with GPUs (neighbours taken together where there are more than 64), columns
// are times.
std::string heat_map(std::string_view title, const Timeline& timeline,
                     const std::vector<model::NodeSpec>& nodes);

// & < > " as entities.
std::string escaped(std::string_view text);
// "0", "90 s", "2.5 h", "3 d".
std::string time_text(std::int64_t seconds);
// A colour that tells line `index` from its neighbours.
std::string_view line_colour(std::size_t index);

}  // namespace aliquot::replay
