// Lines of a text and the words in them, with their places: what the readers of topologies share.
// Views into the caller's text; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace aliquot::inventory {

struct Cell {
  std::string_view text;
  std::size_t column = 1;  // of its first byte in the line, from 1
};

// Words parted by spaces and tabs.
std::vector<Cell> words_of(std::string_view line);
// Cells parted by single tabs, trimmed; empty ones are kept. `column` is that of line[0].
std::vector<Cell> tab_cells_of(std::string_view line, std::size_t column);

// Without line ends (\n or \r\n); no empty line after the last \n.
std::vector<std::string_view> lines_of(std::string_view text);

std::string_view trimmed(std::string_view text);

// Terminal sequences (ESC [ ... letter) removed: the tool underlines its header with them, also
// into files.
std::string without_escapes(std::string_view text);

Error error_at(std::string_view where, std::size_t line, std::size_t column,
               const std::string& what);

}  // namespace aliquot::inventory
