#include "topology/domains.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace aliquot::topology {
namespace {

// Outermost first; the first family of which any label occurs is taken.
const std::array<std::vector<std::string>, 2> kLabelFamilies = {
    std::vector<std::string>{"fabric.topograph.run/tier-3", "fabric.topograph.run/tier-2",
                             "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0",
                             "accelerator.topograph.run/domain",
                             "accelerator.topograph.run/sub-domain"},
    std::vector<std::string>{
        "network.topology.nvidia.com/datacenter", "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/block", "network.topology.nvidia.com/accelerator"}};

// Sums of `slots` over all hosts below each domain.
std::vector<std::uint64_t> room_of(const DomainTree& tree, std::span<const unsigned> slots) {
  const std::vector<Domain>& domains = tree.domains();
  std::vector<std::uint64_t> room(domains.size(), 0);
  for (std::size_t i = domains.size(); i-- > 0;) {  // children before parents
    for (const std::size_t host : domains[i].hosts) room[i] += slots[host];
    for (const std::size_t child : domains[i].children) room[i] += room[child];
  }
  return room;
}

// Fills `pods` into one domain that holds them.
class Filling {
 public:
  Filling(const DomainTree& tree, std::span<const unsigned> free,
          const std::vector<std::uint64_t>& room)
      : tree_(tree), free_(free), room_(room), taken_(free.size(), 0) {}

  void fill(std::size_t domain, std::uint64_t pods) {
    std::vector<Part> parts;
    for (const std::size_t child : tree_.domains()[domain].children)
      parts.push_back({room_[child], child, false});
    for (const std::size_t host : tree_.domains()[domain].hosts)
      parts.push_back({free_[host], host, true});
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.room > b.room; });
    for (std::size_t next = 0; pods > 0; ++next) {
      assert(next < parts.size());
      // The rest goes where it fits tightest: the last part that still holds it, the first of its
      // equals.
      if (parts[next].room >= pods) {
        while (next + 1 < parts.size() && parts[next + 1].room >= pods) ++next;
        while (next > 0 && parts[next - 1].room == parts[next].room && !parts[next - 1].used)
          --next;
        give(parts[next], pods);
        return;
      }
      give(parts[next], parts[next].room);
      parts[next].used = true;
      pods -= parts[next].room;
    }
  }

  std::vector<std::pair<std::size_t, unsigned>> taken() const {
    std::vector<std::pair<std::size_t, unsigned>> pods;
    for (std::size_t host = 0; host < taken_.size(); ++host)
      if (taken_[host] > 0) pods.emplace_back(host, taken_[host]);
    return pods;
  }

 private:
  struct Part {
    std::uint64_t room = 0;
    std::size_t index = 0;
    bool host = false;
    bool used = false;
  };
  void give(const Part& part, std::uint64_t pods) {
    if (part.host)
      taken_[part.index] += static_cast<unsigned>(pods);
    else
      fill(part.index, pods);
  }

  const DomainTree& tree_;
  std::span<const unsigned> free_;
  const std::vector<std::uint64_t>& room_;
  std::vector<unsigned> taken_;
};

std::string pods_text(std::uint64_t pods) {
  return std::to_string(pods) + (pods == 1 ? " pod" : " pods");
}

}  // namespace

DomainTree DomainTree::of(std::span<const HostPath> paths) {
  DomainTree tree;
  // One domain above all needs no root over it.
  const bool one_top = !paths.empty() && !paths[0].domains.empty() &&
                       std::all_of(paths.begin(), paths.end(), [&](const HostPath& path) {
                         return !path.domains.empty() && path.domains[0] == paths[0].domains[0];
                       });
  tree.domains_.push_back({one_top ? paths[0].domains[0] : "", 0, Domain::kNone, {}, {}});
  std::map<std::pair<std::size_t, std::string>, std::size_t> known;
  for (const HostPath& path : paths) {
    std::size_t at = kRoot;
    for (std::size_t i = one_top ? 1 : 0; i < path.domains.size(); ++i) {
      const auto [found, added] = known.try_emplace({at, path.domains[i]}, tree.domains_.size());
      if (added) {
        tree.domains_[at].children.push_back(found->second);
        tree.domains_.push_back({path.domains[i], 0, at, {}, {}});
      }
      at = found->second;
    }
    tree.domains_[at].hosts.push_back(tree.hosts_.size());
    tree.hosts_.push_back(path.host);
  }
  for (std::size_t i = tree.domains_.size(); i-- > 1;) {
    Domain& parent = tree.domains_[tree.domains_[i].parent];
    parent.tier = std::max(parent.tier, tree.domains_[i].tier + 1);
  }
  return tree;
}

std::string DomainTree::path_text(std::size_t domain) const {
  std::string text = domains_[domain].name;
  for (std::size_t at = domains_[domain].parent; at != Domain::kNone; at = domains_[at].parent)
    if (!domains_[at].name.empty()) text.insert(0, 1, '/').insert(0, domains_[at].name);
  return text.empty() ? "the cluster" : text;
}

std::vector<std::string> known_levels(const std::map<std::string, std::string>& labels) {
  for (const std::vector<std::string>& family : kLabelFamilies) {
    std::vector<std::string> levels;
    for (const std::string& label : family)
      if (labels.contains(label)) levels.push_back(label);
    if (!levels.empty()) return levels;
  }
  return {};
}

HostPath path_by_labels(std::string host, const std::map<std::string, std::string>& labels,
                        std::span<const std::string> levels) {
  HostPath path{std::move(host), {}};
  for (const std::string& level : levels) {
    const auto label = labels.find(level);
    if (label == labels.end()) break;
    path.domains.push_back(label->second);
  }
  return path;
}

Result<GangPlacement> place_gang(const DomainTree& tree, const Room& room, const Gang& gang) {
  assert(room.free.size() == tree.hosts().size() && room.all.size() == tree.hosts().size());
  const std::vector<Domain>& domains = tree.domains();
  const std::vector<std::uint64_t> free = room_of(tree, room.free);
  const auto may = [&](std::size_t i) {
    return !gang.highest_tier || domains[i].tier <= *gang.highest_tier;
  };
  std::size_t best = Domain::kNone;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (!may(i) || free[i] < gang.pods) continue;
    if (best == Domain::kNone ||
        std::pair(domains[i].tier, free[i]) < std::pair(domains[best].tier, free[best]))
      best = i;
  }
  if (best != Domain::kNone) {
    Filling filling(tree, room.free, free);
    filling.fill(best, gang.pods);
    return GangPlacement{best, filling.taken()};
  }

  const std::vector<std::uint64_t> all = room_of(tree, room.all);
  const auto roomiest = [&](const std::vector<std::uint64_t>& room_in) {
    std::size_t most = Domain::kNone;
    for (std::size_t i = 0; i < domains.size(); ++i)
      if (may(i) && (most == Domain::kNone || room_in[i] > room_in[most])) most = i;
    return most;
  };
  const std::string asked =
      pods_text(gang.pods) + " asked" +
      (gang.highest_tier ? " in one domain of tier " + std::to_string(*gang.highest_tier) : "");
  const std::size_t ever = roomiest(all);
  if (ever == Domain::kNone || all[ever] < gang.pods)
    return Error{Errc::kInvalid,
                 asked + (ever == Domain::kNone ? ", there is none"
                                                : ", the largest (" + tree.path_text(ever) +
                                                      ") holds " + std::to_string(all[ever]))};
  const std::size_t now = roomiest(free);
  return Error{Errc::kExhausted, asked + ", the roomiest (" + tree.path_text(now) +
                                     ") has room for " + std::to_string(free[now])};
}

}  // namespace aliquot::topology
