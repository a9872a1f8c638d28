// Keys are read in any case, as Slurm does.
#include "topology/topology_conf.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace aliquot::topology {
namespace {

using model::HostPath;

constexpr std::size_t kMostHosts = 200'000;

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

// At commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    parts.push_back(list.substr(from, i - from));
    from = i + 1;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string padded(unsigned long number, std::size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// Appends what "n[01-03]x" means; false where it means nothing.
bool expand_one(std::string_view name, std::vector<std::string>& hosts) {
  const std::size_t open = name.find('[');
  if (open == std::string_view::npos) {
    if (name.empty() || name.find(']') != std::string_view::npos) return false;
    hosts.emplace_back(name);
    return hosts.size() <= kMostHosts;
  }
  const std::size_t close = name.find(']', open);
  if (close == std::string_view::npos) return false;
  const std::string_view tail = name.substr(close + 1);
  if (tail.find('[') != std::string_view::npos) return false;  // one range a name is what we read
  for (const std::string_view range : parts_of(name.substr(open + 1, close - open - 1))) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    if (!is_number(first) || !is_number(last)) return false;
    const unsigned long from = std::stoul(std::string(first));
    const unsigned long to = std::stoul(std::string(last));
    if (to < from || to - from >= kMostHosts || hosts.size() + (to - from) >= kMostHosts)
      return false;
    for (unsigned long number = from; number <= to; ++number)
      hosts.push_back(std::string(name.substr(0, open)) + padded(number, first.size()) +
                      std::string(tail));
  }
  return true;
}

struct Switch {
  std::vector<std::string> hosts;
  std::vector<std::string> below;
  std::string parent;
  std::size_t line = 0;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Result<std::vector<HostPath>> read() {
    while (!text_.empty() || !line_.empty()) {
      if (!next_line()) continue;
      if (Status taken = take(line_); !taken) return taken.error();
      line_.clear();
    }
    if (order_.empty()) return fault("no SwitchName= or BlockName= line");
    if (Status joined = join(); !joined) return joined.error();
    return blocks_ ? block_paths() : tree_paths();
  }

 private:
  Error fault(const std::string& what) const {
    return {Errc::kInvalid, std::string(where_) + ":" + std::to_string(number_) + ": " + what};
  }

  // Adds a line of the text to line_; true when it does not go on ("\" at its end).
  bool next_line() {
    ++number_;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
      line.remove_suffix(1);
    const bool goes_on = !line.empty() && line.back() == '\\' && !text_.empty();
    if (goes_on) line.remove_suffix(1);
    line_ += std::string(line) + " ";
    return !goes_on;
  }

  Status take(std::string_view line) {
    std::map<std::string, std::string> fields;
    for (std::size_t at = line.find_first_not_of(" \t"); at != std::string_view::npos;
         at = line.find_first_not_of(" \t", at)) {
      const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
      const std::string_view word = line.substr(at, end - at);
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos || equals + 1 == word.size())
        return fault("expected KEY=VALUE, not '" + std::string(word) + "'");
      if (!fields.emplace(lower(word.substr(0, equals)), word.substr(equals + 1)).second)
        return fault("'" + std::string(word.substr(0, equals)) + "' is given twice");
      at = end;
    }
    if (fields.empty()) return {};
    if (fields.contains("blocksizes")) return take_sizes(fields["blocksizes"]);
    return take_switch(fields);
  }

  Status take_switch(std::map<std::string, std::string>& fields) {
    const bool block = fields.contains("blockname");
    const std::string name = fields[block ? "blockname" : "switchname"];
    if (name.empty()) return fault("expected SwitchName=, BlockName= or BlockSizes=");
    if (!order_.empty() && block != blocks_) return fault("switches and blocks in one file");
    blocks_ = block;
    for (const auto& [key, value] : fields)
      if (key != "blockname" && key != "switchname" && key != "nodes" && key != "switches" &&
          key != "linkspeed")
        return fault("unknown key '" + key + "'");
    Switch made;
    made.line = number_;
    for (const auto& [key, list] : {std::pair("nodes", &made.hosts), {"switches", &made.below}}) {
      if (!fields.contains(key)) continue;
      Result<std::vector<std::string>> names = expanded_hosts(fields[key]);
      if (!names) return fault(names.error().message);
      *list = *std::move(names);
    }
    if (made.hosts.empty() == made.below.empty())
      return fault("'" + name + "' needs either Nodes= or Switches=");
    if (block && made.hosts.empty()) return fault("block '" + name + "' needs Nodes=");
    for (const std::string& host : made.hosts)
      if (!seen_hosts_.insert(host).second) return fault("'" + host + "' is in two places");
    if (!switches_.emplace(name, std::move(made)).second)
      return fault("'" + name + "' is described twice");
    order_.push_back(name);
    return {};
  }

  Status take_sizes(const std::string& list) {
    for (const std::string_view size : parts_of(list)) {
      if (!is_number(size)) return fault("BlockSizes: expected numbers, as in 4,16");
      const auto value = static_cast<std::size_t>(std::stoul(std::string(size)));
      if (value == 0 || (!sizes_.empty() && (value % sizes_[0] != 0 || value <= sizes_.back())))
        return fault("BlockSizes: each must be a greater multiple of the first");
      sizes_.push_back(value);
    }
    return {};
  }

  // Names each switch's parent; refuses unknown ones, two parents and circles.
  Status join() {
    for (const std::string& name : order_) {
      number_ = switches_[name].line;
      for (const std::string& below : switches_[name].below) {
        const auto found = switches_.find(below);
        if (found == switches_.end()) return fault("switch '" + below + "' is not described");
        if (!found->second.parent.empty())
          return fault("switch '" + below + "' is below '" + found->second.parent + "' already");
        found->second.parent = name;
      }
    }
    for (const std::string& name : order_) {
      std::size_t steps = 0;
      for (std::string at = name; !at.empty(); at = switches_[at].parent)
        if (++steps > order_.size()) {
          number_ = switches_[name].line;
          return fault("switch '" + name + "' is below itself");
        }
    }
    return {};
  }

  std::vector<HostPath> tree_paths() {
    std::vector<HostPath> paths;
    for (const std::string& name : order_) {
      std::vector<std::string> domains;
      for (std::string at = name; !at.empty(); at = switches_[at].parent) domains.push_back(at);
      std::reverse(domains.begin(), domains.end());
      for (const std::string& host : switches_[name].hosts) paths.push_back({host, domains});
    }
    return paths;
  }

  // BlockSizes 4,16 over blocks of 4 hosts: four blocks in the order of the file are one group.
  std::vector<HostPath> block_paths() {
    std::vector<HostPath> paths;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      std::vector<std::string> domains;
      for (std::size_t level = sizes_.size(); level-- > 1;) {
        const std::size_t blocks = sizes_[level] / sizes_[0];
        domains.push_back("blocks of " + std::to_string(sizes_[level]) + " #" +
                          std::to_string(i / blocks));
      }
      domains.push_back(order_[i]);
      for (const std::string& host : switches_[order_[i]].hosts) paths.push_back({host, domains});
    }
    return paths;
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t number_ = 0;
  std::string line_;
  bool blocks_ = false;
  std::map<std::string, Switch> switches_;
  std::vector<std::string> order_;
  std::set<std::string> seen_hosts_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

Result<std::vector<std::string>> expanded_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view part : parts_of(list))
    if (!expand_one(part, hosts))
      return Error{Errc::kInvalid,
                   "list '" + std::string(list) + "': expected names such as n1,m[01-16,20]"};
  return hosts;
}

Result<std::vector<HostPath>> parse_topology_conf(std::string_view text, std::string_view where) {
  return Reader(text, where).read();
}

}  // namespace aliquot::topology
