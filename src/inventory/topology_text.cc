// The tool's text is a square of words under a header of device names, followed by columns that
// only some versions print. Words of the square never hold blanks, so blanks of any kind and number
// may part them; the columns behind it may be empty, so there tabs count where the line has them.

#include "inventory/topology_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "inventory/text_cells.h"

namespace aliquot::inventory {
namespace {

using model::Device;
using model::Link;
using model::LinkKind;
using model::NodeTopology;

constexpr std::size_t kMostDevices = 128;
constexpr unsigned kMostNvlinks = 36;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool is_gpu_name(std::string_view name) {
  return name.size() > 3 && name.starts_with("GPU") &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

std::optional<unsigned> whole_number(std::string_view text) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The link that a word of the square means; nothing for an unknown word.
std::optional<Link> link_of(std::string_view word, const TopologyTextOptions& options) {
  static constexpr std::pair<std::string_view, LinkKind> kPaths[] = {
      {"C2C", LinkKind::kC2c}, {"PIX", LinkKind::kPix}, {"PSB", LinkKind::kPix},
      {"PXB", LinkKind::kPxb}, {"PHB", LinkKind::kPhb}, {"NODE", LinkKind::kNode},
      {"SYS", LinkKind::kSys}, {"SOC", LinkKind::kSys},  // drivers before 390 said SOC
  };
  for (const auto& [name, kind] : kPaths)
    if (word == name) return model::path_link(kind, options.pcie_generation);
  if (!word.starts_with("NV")) return std::nullopt;
  const auto count = whole_number(word.substr(2));
  if (!count || *count == 0 || *count > kMostNvlinks) return std::nullopt;
  return model::nvlink(*count, options.nvlink_generation);
}

// "0-23,48-71", "0,2,4", "3"; the lowest number of it, or nothing where the text is another one.
std::optional<unsigned> first_of_list(std::string_view text) {
  std::optional<unsigned> first;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto from = whole_number(range.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : whole_number(range.substr(dash + 1));
    if (!from || !to || *to < *from) return std::nullopt;
    first = std::min(first.value_or(*from), *from);
    if (comma == text.size()) return first;
    text.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view where, const TopologyTextOptions& options)
      : lines_(lines_of(text)), where_(where), options_(options) {}

  Result<NodeTopology> read() {
    skip_blank_lines();
    if (Status header = read_header(); !header) return header.error();
    for (std::size_t row = 0; row < names_.size(); ++row, ++line_)
      if (Status status = read_row(row); !status) return status.error();
    if (Status legend = read_legend(); !legend) return legend.error();
    if (!has_column(Column::kNuma)) number_cpu_lists();
    return assembled();
  }

 private:
  enum class Column { kCpus, kNuma, kGpuNuma };

  Error fault(std::size_t column, const std::string& what) const {
    return error_at(where_, line_ + 1, column, what);
  }
  bool at_end() const { return line_ >= lines_.size(); }
  bool has_column(Column column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }
  void skip_blank_lines() {
    while (!at_end() && trimmed(lines_[line_]).empty()) ++line_;
  }

  Status read_header() {
    const std::vector<Cell> words = at_end() ? std::vector<Cell>{} : words_of(lines_[line_]);
    if (words.empty() || words[0].text != "GPU0")
      return fault(words.empty() ? 1 : words[0].column,
                   "expected the header of `nvidia-smi topo -m`, which begins with GPU0");
    std::size_t i = 0;
    for (; i < words.size() && !begins_column(words, i); ++i)
      if (Status name = add_name(words[i]); !name) return name;
    while (i < words.size()) {
      if (!begins_column(words, i)) return fault(words[i].column, "unknown column");
      const Column column = words[i].text == "CPU"    ? Column::kCpus
                            : words[i].text == "NUMA" ? Column::kNuma
                                                      : Column::kGpuNuma;
      if (has_column(column)) return fault(words[i].column, "this column is there already");
      columns_.push_back(column);
      i += column == Column::kGpuNuma ? 3 : 2;
    }
    ++line_;
    devices_.resize(names_.size());
    links_.resize(names_.size() * names_.size());
    return {};
  }

  static bool begins_column(const std::vector<Cell>& words, std::size_t i) {
    const auto word = [&](std::size_t at) {
      return at < words.size() ? words[at].text : std::string_view{};
    };
    return ((word(i) == "CPU" || word(i) == "NUMA") && word(i + 1) == "Affinity") ||
           (word(i) == "GPU" && word(i + 1) == "NUMA" && word(i + 2) == "ID");
  }

  Status add_name(const Cell& word) {
    if (is_gpu_name(word.text)) {
      const std::string expected = "GPU" + std::to_string(gpus_);
      if (word.text != expected || gpus_ != names_.size())
        return fault(word.column, "expected " + expected + " here, not " + quoted(word.text) +
                                      ": GPUs stand first and count from 0");
      ++gpus_;
    }
    if (std::find(names_.begin(), names_.end(), word.text) != names_.end())
      return fault(word.column, quoted(word.text) + " is there already");
    if (names_.size() == kMostDevices)
      return fault(word.column, "more than " + std::to_string(kMostDevices) + " devices");
    names_.push_back(word.text);
    return {};
  }

  Status read_row(std::size_t row) {
    const std::vector<Cell> words = at_end() ? std::vector<Cell>{} : words_of(lines_[line_]);
    if (words.empty() || words[0].text != names_[row])
      return fault(words.empty() ? 1 : words[0].column,
                   "the row of " + std::string(names_[row]) + " is missing: the header names " +
                       std::to_string(names_.size()) + " devices, " + std::to_string(row) +
                       " rows came");
    if (words.size() < names_.size() + 1)
      return fault(lines_[line_].size() + 1, "the row of " + std::string(names_[row]) +
                                                 " ends after " + std::to_string(words.size() - 1) +
                                                 " of " + std::to_string(names_.size()) + " links");
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (Status link = read_link(row, i, words[i + 1]); !link) return link;
    const Cell& last = words[names_.size()];
    return read_columns(devices_[row], last.column - 1 + last.text.size());
  }

  Status read_link(std::size_t row, std::size_t column, const Cell& word) {
    if ((word.text == "X") != (row == column))
      return fault(word.column,
                   row == column ? "expected X, a device's link to itself, not " + quoted(word.text)
                                 : "X stands for a device itself, not for another");
    if (row == column) return {};
    const auto link = link_of(word.text, options_);
    if (!link)
      return fault(word.column, "unknown link " + quoted(word.text) +
                                    ": expected NV#, C2C, PIX, PXB, PHB, NODE or SYS");
    links_[row * names_.size() + column] = *link;
    if (column < row && links_[column * names_.size() + row] != *link)
      return fault(word.column, std::string(names_[row]) + " to " + std::string(names_[column]) +
                                    " is " + std::string(word.text) +
                                    ", but the other way round it was " +
                                    model::link_text(links_[column * names_.size() + row]));
    return {};
  }

  // What stands behind the links, from byte `from` of the line.
  Status read_columns(Device& device, std::size_t from) {
    const std::string_view rest = lines_[line_].substr(from);
    std::vector<Cell> cells;
    if (rest.find('\t') != std::string_view::npos) {
      cells = tab_cells_of(rest, from + 1);
      if (cells[0].text.empty()) cells.erase(cells.begin());  // what the last link's tab ends
    } else {
      cells = words_of(rest);
      for (Cell& cell : cells) cell.column += from;
    }
    std::size_t next = 0;
    for (const Cell& cell : cells) {
      if (next == columns_.size() || columns_[next] == Column::kGpuNuma) {
        // The tool puts an empty cell before "GPU NUMA ID", and ends some rows with empty ones.
        if (cell.text.empty()) continue;
        if (next == columns_.size())
          return fault(cell.column, quoted(cell.text) + " stands under no column");
      }
      if (Status read = read_column(device, columns_[next++], cell); !read) return read;
    }
    return {};
  }

  Status read_column(Device& device, Column column, const Cell& cell) {
    if (cell.text.empty() || cell.text == "N/A") return {};
    const auto first = first_of_list(cell.text);
    if (!first)
      return fault(cell.column,
                   "expected numbers such as 0-23,48-71 or N/A, not " + quoted(cell.text));
    if (column == Column::kCpus) device.cpus = std::string(cell.text);
    // Several nodes: the lowest stands for them. "GPU NUMA ID" is memory of the GPU: not kept.
    if (column == Column::kNuma) device.numa = static_cast<int>(*first);
    return {};
  }

  Status read_legend() {
    enum class Part { kNone, kLinks, kNics };
    Part part = Part::kNone;
    for (; !at_end(); ++line_) {
      const std::string_view line = trimmed(lines_[line_]);
      const std::size_t column = lines_[line_].find_first_not_of(" \t") + 1;
      if (line.empty()) continue;
      if (line == "Legend:") {
        part = Part::kLinks;
      } else if (line == "NIC Legend:") {
        part = Part::kNics;
      } else if (part == Part::kNone ||
                 (part == Part::kLinks && line.find('=') == std::string_view::npos)) {
        return fault(column, "unexpected text behind the matrix");
      } else if (part == Part::kNics) {
        if (Status nic = read_nic_name(line, column); !nic) return nic;
      }
    }
    return {};
  }

  // "NIC0: mlx5_1"
  Status read_nic_name(std::string_view line, std::size_t column) {
    const std::size_t colon = line.find(':');
    const std::string_view label = line.substr(0, colon);
    const auto found = std::find(names_.begin(), names_.end(), label);
    if (colon == std::string_view::npos || found == names_.end() || is_gpu_name(label))
      return fault(column, "expected a NIC of the header and its name, such as NIC0: mlx5_0");
    const std::string_view name = trimmed(line.substr(colon + 1));
    if (name.empty()) return fault(column, std::string(label) + " has no name");
    devices_[static_cast<std::size_t>(found - names_.begin())].description = std::string(name);
    return {};
  }

  // Old drivers print no NUMA column; there the CPU lists tell the nodes apart.
  void number_cpu_lists() {
    std::map<std::string, int> nodes;
    for (Device& device : devices_)
      if (!device.cpus.empty())
        device.numa = nodes.try_emplace(device.cpus, static_cast<int>(nodes.size())).first->second;
  }

  NodeTopology assembled() {
    for (std::size_t i = 0; i < names_.size(); ++i) devices_[i].name = std::string(names_[i]);
    const auto first_nic = devices_.begin() + static_cast<std::ptrdiff_t>(gpus_);
    NodeTopology node({devices_.begin(), first_nic}, {first_nic, devices_.end()});
    for (std::size_t a = 0; a < names_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) node.set_link(a, b, links_[a * names_.size() + b]);
    model::mark_nvswitch(node);
    return node;
  }

  std::vector<std::string_view> lines_;
  std::string_view where_;
  TopologyTextOptions options_;
  std::size_t line_ = 0;  // the next one, from 0

  std::vector<std::string_view> names_;  // GPUs, then NICs
  std::size_t gpus_ = 0;
  std::vector<Column> columns_;
  std::vector<Device> devices_;
  std::vector<Link> links_;
};

}  // namespace

Result<NodeTopology> parse_topology_text(std::string_view text, std::string_view where,
                                         const TopologyTextOptions& options) {
  const std::string plain = without_escapes(text);
  return Reader(plain, where, options).read();
}

std::string print_topology_text(const NodeTopology& node) {
  std::string text;
  for (std::size_t i = 0; i < node.device_count(); ++i) text += "\t" + node.device(i).name;
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (std::size_t a = 0; a < node.device_count(); ++a) {
    const Device& device = node.device(a);
    text += device.name;
    for (std::size_t b = 0; b < node.device_count(); ++b)
      text += "\t" + (a == b ? " X " : model::link_text(node.link(a, b)));
    text += "\t" + device.cpus + "\t" + (device.numa ? std::to_string(*device.numa) : "N/A") + "\n";
  }
  bool first = true;
  for (const Device& nic : node.nics()) {
    if (nic.description.empty()) continue;
    if (std::exchange(first, false)) text += "\nNIC Legend:\n\n";
    text += "  " + nic.name + ": " + nic.description + "\n";
  }
  return text;
}

Result<NodeTopology> parse_topology(std::string_view text, std::string_view where,
                                    const TopologyTextOptions& options) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool weights = first != std::string_view::npos &&
                       std::string_view("X0123456789").find(text[first]) != std::string_view::npos;
  return weights ? parse_weight_matrix(text, where) : parse_topology_text(text, where, options);
}

}  // namespace aliquot::inventory
