// Pieces of the HTML pages that replays write: the page around a body, and rows of its tables.
// A page loads nothing from elsewhere. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aliquot::replay {

// `body` is HTML; it begins below the heading.
std::string page_of(std::string_view title, const std::string& body);

// A row of cells "td" or "th"; the texts are HTML already.
std::string table_row(const std::vector<std::string>& texts, std::string_view tag);

// "12.3".
std::string one_decimal(double value);

// The colour of line `index` as a small square, beside its name.
std::string colour_key(std::size_t index);

}  // namespace aliquot::replay
