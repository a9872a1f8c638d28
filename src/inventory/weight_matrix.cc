// The plain square of bandwidths; see topology_text.h.

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inventory/text_cells.h"
#include "inventory/topology_text.h"

namespace aliquot::inventory {
namespace {

using model::Link;
using model::NodeTopology;

constexpr std::size_t kMostGpus = 128;
constexpr std::uint64_t kMostGbS = 1'000'000;  // in MB/s still far inside 32 bits

struct Entry {
  Cell cell;
  std::size_t line = 1;
};

// "300", "12.5": MB/s; at most three decimals.
std::optional<std::uint32_t> mb_s_of(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  std::string decimals(dot == std::string_view::npos ? "0" : text.substr(dot + 1));
  if (decimals.empty() || decimals.size() > 3) return std::nullopt;
  decimals.resize(3, '0');
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const auto gb_s = number(whole);
  const auto rest = number(decimals);
  if (!gb_s || !rest || *gb_s > kMostGbS) return std::nullopt;
  return static_cast<std::uint32_t>(*gb_s * 1000 + *rest);
}

// "300" or "300@1500".
std::optional<Link> link_of(std::string_view word) {
  const std::size_t at = word.find('@');
  const auto mb_s = mb_s_of(word.substr(0, at));
  if (!mb_s) return std::nullopt;
  std::uint32_t ns = 0;
  if (at != std::string_view::npos) {
    const std::string_view digits = word.substr(at + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), ns);
    if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  return model::weight_link(*mb_s, ns);
}

// Rows of entries, parted by line ends and "/".
std::vector<std::vector<Entry>> rows_of(std::string_view text) {
  std::vector<std::vector<Entry>> rows;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    std::size_t from = 0;
    while (from <= line.size()) {
      const std::size_t end = std::min(line.find('/', from), line.size());
      std::vector<Entry> row;
      for (const Cell& word : words_of(line.substr(from, end - from)))
        row.push_back({{word.text, word.column + from}, number});
      if (!row.empty()) rows.push_back(std::move(row));
      from = end + 1;
    }
  }
  return rows;
}

std::vector<model::Device> numbered_gpus(std::size_t count) {
  std::vector<model::Device> gpus(count);
  for (std::size_t i = 0; i < count; ++i) gpus[i].name = "GPU" + std::to_string(i);
  return gpus;
}

std::string weight_text(const Link& link) {
  const std::string gb_s = model::gb_s_text(link.bandwidth_mb_s);
  return link.latency_ns == 0 ? gb_s : gb_s + "@" + std::to_string(link.latency_ns);
}

}  // namespace

Result<NodeTopology> parse_weight_matrix(std::string_view text, std::string_view where) {
  const std::vector<std::vector<Entry>> rows = rows_of(text);
  if (rows.empty()) return error_at(where, 1, 1, "expected a square of bandwidths in GB/s");
  if (rows.size() > kMostGpus)
    return error_at(where, rows[kMostGpus][0].line, 1,
                    "more than " + std::to_string(kMostGpus) + " GPUs");
  NodeTopology node(numbered_gpus(rows.size()), {});
  for (std::size_t a = 0; a < rows.size(); ++a) {
    const std::vector<Entry>& row = rows[a];
    if (row.size() != rows.size())
      return error_at(where, row.back().line, row.back().cell.column,
                      "row " + std::to_string(a) + " has " + std::to_string(row.size()) +
                          " numbers, but there are " + std::to_string(rows.size()) + " rows");
    for (std::size_t b = 0; b < row.size(); ++b) {
      const auto& [cell, line] = row[b];
      const auto link = a == b && cell.text == "X" ? Link{} : link_of(cell.text);
      if (!link)
        return error_at(where, line, cell.column,
                        "expected GB/s with at most three decimals, as in 300 or 12.5@1500 (with "
                        "nanoseconds), not '" +
                            std::string(cell.text) + "'");
      if (a == b && link->bandwidth_mb_s != 0)
        return error_at(where, line, cell.column, "a GPU's link to itself is written 0 or X");
      if (b < a && node.link(a, b) != *link)
        return error_at(where, line, cell.column,
                        "GPU" + std::to_string(a) + " to GPU" + std::to_string(b) + " is " +
                            std::string(cell.text) + ", but the other way round it was " +
                            weight_text(node.link(a, b)));
      if (a < b) node.set_link(a, b, *link);
    }
  }
  return node;
}

std::string print_weight_matrix(const NodeTopology& node) {
  std::string text;
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < node.gpu_count(); ++b)
      text +=
          (a == b ? "0" : weight_text(node.link(a, b))) + (b + 1 == node.gpu_count() ? "\n" : " ");
  return text;
}

}  // namespace aliquot::inventory
