#include "inventory/text_cells.h"

namespace aliquot::inventory {
namespace {

constexpr std::string_view kBlanks = " \t";

}  // namespace

std::vector<Cell> words_of(std::string_view line) {
  std::vector<Cell> words;
  std::size_t at = line.find_first_not_of(kBlanks);
  while (at != std::string_view::npos) {
    std::size_t end = line.find_first_of(kBlanks, at);
    if (end == std::string_view::npos) end = line.size();
    words.push_back({line.substr(at, end - at), at + 1});
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<Cell> tab_cells_of(std::string_view line, std::size_t column) {
  std::vector<Cell> cells;
  for (std::size_t from = 0; from <= line.size();) {
    std::size_t tab = line.find('\t', from);
    if (tab == std::string_view::npos) tab = line.size();
    const std::string_view cell = line.substr(from, tab - from);
    const std::size_t lead = cell.find_first_not_of(' ');
    cells.push_back({trimmed(cell), column + from + (lead == std::string_view::npos ? 0 : lead)});
    from = tab + 1;
  }
  return cells;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.size() ? end : end + 1);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) != "\x1b[") {
      plain += text[i];
      continue;
    }
    // Parameters are bytes 0x30-0x3f, the end is a letter.
    i += 2;
    while (i < text.size() && text[i] >= '0' && text[i] <= '?') ++i;
  }
  return plain;
}

Error error_at(std::string_view where, std::size_t line, std::size_t column,
               const std::string& what) {
  return {Errc::kInvalid, std::string(where) + ":" + std::to_string(line) + ":" +
                              std::to_string(column) + ": " + what};
}

}  // namespace aliquot::inventory
