#include "cli/table.h"

#include <algorithm>

namespace aliquot::cli {
namespace {

std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::ranges::count_if(
      cell, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](auto cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string padding(widths[i] - width_of(cell), ' ');
      if (i != 0) line += "  ";
      line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

}  // namespace aliquot::cli
