// Volcano's HyperNodes as paths; see domains.h.
#include <algorithm>
#include <map>
#include <regex>
#include <utility>

#include "topology/domains.h"

namespace aliquot::topology {
namespace {

using model::HyperMember;
using model::HyperNode;
using model::LabelledHost;

Error fault(const HyperNode& node, const std::string& what) {
  return {Errc::kInvalid, "HyperNode " + node.name + ": " + what};
}

class Membership {
 public:
  Membership(std::span<const LabelledHost> hosts, std::span<const HyperNode> nodes)
      : hosts_(hosts), nodes_(nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) by_name_.emplace(nodes[i].name, i);
  }

  Status read() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (by_name_.at(nodes_[i].name) != i) return fault(nodes_[i], "is described twice");
      for (const HyperMember& member : nodes_[i].members)
        if (Status ok = member.is_host ? add_hosts(i, member) : add_nodes(i, member); !ok)
          return ok;
    }
    return check_circles();
  }

  std::vector<HostPath> paths() const {
    std::vector<HostPath> paths;
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      HostPath path{hosts_[host].name, {}};
      const auto in = host_in_.find(host);
      for (std::size_t at = in == host_in_.end() ? Domain::kNone : in->second; at != Domain::kNone;
           at = above(at))
        path.domains.push_back(nodes_[at].name);
      std::ranges::reverse(path.domains);
      paths.push_back(std::move(path));
    }
    return paths;
  }

 private:
  std::size_t above(std::size_t node) const {
    const auto found = node_in_.find(node);
    return found == node_in_.end() ? Domain::kNone : found->second;
  }

  // Those whose name or labels the member means. The one place where a pattern can be wrong.
  template <typename Items>
  Result<std::vector<std::size_t>> meant(const HyperNode& node, const HyperMember& member,
                                         const Items& items) const {
    std::vector<std::size_t> found;
    try {
      const std::regex pattern(member.pattern);
      for (std::size_t i = 0; i < items.size(); ++i)
        if (!member.name.empty()      ? items[i].name == member.name
            : !member.pattern.empty() ? std::regex_search(items[i].name, pattern)
                                      : has_labels(items[i], member.labels))
          found.push_back(i);
    } catch (const std::regex_error& error) {
      return fault(node, "pattern '" + member.pattern + "': " + error.what());
    }
    return found;
  }
  static bool has_labels(const HyperNode& /*node*/, const Labels& /*wanted*/) { return false; }
  static bool has_labels(const LabelledHost& host, const Labels& wanted) {
    return !wanted.empty() && std::ranges::all_of(wanted, [&](const auto& label) {
      const auto found = host.labels.find(label.first);
      return found != host.labels.end() && found->second == label.second;
    });
  }

  Status add_hosts(std::size_t i, const HyperMember& member) {
    const auto hosts = meant(nodes_[i], member, hosts_);
    if (!hosts) return hosts.error();
    for (const std::size_t host : *hosts) {
      const auto [in, is_new] = host_in_.try_emplace(host, i);
      if (!is_new && in->second != i)
        return fault(nodes_[i], "host '" + hosts_[host].name + "' is in '" +
                                    nodes_[in->second].name + "' already");
    }
    return {};
  }

  Status add_nodes(std::size_t i, const HyperMember& member) {
    const auto below = meant(nodes_[i], member, nodes_);
    if (!below) return below.error();
    for (const std::size_t node : *below) {
      const auto [in, is_new] = node_in_.try_emplace(node, i);
      if (!is_new && in->second != i)
        return fault(nodes_[i],
                     "'" + nodes_[node].name + "' is in '" + nodes_[in->second].name + "' already");
    }
    return {};
  }

  Status check_circles() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::size_t steps = 0;
      for (std::size_t at = i; at != Domain::kNone; at = above(at))
        if (++steps > nodes_.size()) return fault(nodes_[i], "lies in itself");
    }
    return {};
  }

  std::span<const LabelledHost> hosts_;
  std::span<const HyperNode> nodes_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::size_t, std::size_t> host_in_;
  std::map<std::size_t, std::size_t> node_in_;
};

}  // namespace

Result<std::vector<HostPath>> paths_by_hyper_nodes(std::span<const LabelledHost> hosts,
                                                   std::span<const HyperNode> hyper_nodes) {
  Membership membership(hosts, hyper_nodes);
  if (Status ok = membership.read(); !ok) return ok.error();
  return membership.paths();
}

}  // namespace aliquot::topology
