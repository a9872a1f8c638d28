#include "scheduler/gang.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/gang_nodes.h"

namespace aliquot::scheduler {
namespace {

class Search {
 public:
  Search(Scheduler& scheduler, const DomainTree& tree, const std::vector<bool>* allowed)
      : scheduler_(scheduler), tree_(tree), allowed_(allowed) {}

  Status add(const GangMember& member) {
    const Result<ClassId> id = scheduler_.classify(member.request);
    if (!id) return id.error();
    for (int i = 0; i < member.count; ++i) units_.push_back({*id, units_.size()});
    gpus_ += std::int64_t{scheduler_.demand(*id).gpus()} * member.count;
    return {};
  }

  // Hardest first; the gang's order among equals.
  void sort() {
    std::stable_sort(units_.begin(), units_.end(), [&](const GangUnit& a, const GangUnit& b) {
      const Demand& left = scheduler_.demand(a.demand);
      const Demand& right = scheduler_.demand(b.demand);
      return std::tuple(left.gpus(), left.cpu_milli) > std::tuple(right.gpus(), right.cpu_milli);
    });
    gathers_ = units_.size() > 1 && scheduler_.policy().arranges_gangs() &&
               is_gatherable(scheduler_, units_);
  }

  // The domains of a level that might hold the gang, fullest first.
  std::vector<std::size_t> candidates(std::size_t level) const {
    std::vector<std::pair<std::int64_t, std::size_t>> found;
    for (const std::size_t d : tree_.at_level(level)) {
      const std::int64_t room = room_of(d);
      if (room >= 0) found.emplace_back(room, d);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> domains;
    for (const auto& [room, d] : found) domains.push_back(d);
    return domains;
  }

  bool place_in(std::size_t domain) {
    const std::vector<std::vector<NodeId>> order = sub_domains(domain);
    std::vector<Decision> placed(units_.size());
    std::size_t done = 0;
    if (gathers_)
      for (const std::vector<NodeId>& nodes : order)
        done = gather(scheduler_, units_, done, nodes, placed);
    return place_rest(order, done, std::move(placed));
  }

  // On one node in any domain of the level. The lowest domain of the node, or none.
  std::optional<std::size_t> place_on_one_node(std::size_t level) {
    if (!gathers_) return std::nullopt;
    std::vector<NodeId> nodes;
    for (const std::size_t domain : tree_.at_level(level))
      for (const NodeId node : usable(domain)) nodes.push_back(node);
    std::vector<Decision> placed(units_.size());
    const std::size_t done = gather_on_one(scheduler_, units_, nodes, placed);
    if (done == 0) return std::nullopt;
    const auto node = static_cast<NodeId>(placed[units_.front().member].placement.node);
    if (!place_rest({{node}}, done, std::move(placed))) return std::nullopt;
    std::size_t domain = DomainTree::kRoot;  // children come after their parents
    for (std::size_t d = 0; d < tree_.domains().size(); ++d)
      if (std::ranges::binary_search(tree_.domains()[d].hosts, node)) domain = d;
    return domain;
  }

  std::vector<Decision> decisions() && { return std::move(decisions_); }
  std::size_t size() const { return units_.size(); }
  std::int64_t gpus() const { return gpus_; }
  // The member that no domain tried last could take.
  ClassId failed() const { return failed_.value_or(units_.front().demand); }

  // Whether some domain of this level has GPUs for it when empty, and each member fits somewhere.
  bool ever(std::size_t level) const {
    for (const GangUnit& unit : units_)
      if (scheduler_.explain(unit.demand).outcome == Outcome::kNever) return false;
    const auto domains = tree_.at_level(level);
    return std::any_of(domains.begin(), domains.end(), [&](std::size_t d) {
      std::int64_t gpus = 0;
      for (const NodeId node : tree_.domains()[d].hosts)
        gpus += scheduler_.snapshot().spec(node).gpu_count;
      return gpus >= whole_gpus();
    });
  }

 private:
  // The units behind the first `done`, each by itself.
  bool place_rest(const std::vector<std::vector<NodeId>>& order, std::size_t done,
                  std::vector<Decision> placed) {
    for (; done < units_.size(); ++done) {
      Decision d;
      for (const std::vector<NodeId>& nodes : order) {
        d = scheduler_.place(units_[done].demand, nodes);
        if (d.outcome == Outcome::kPlaced) break;
      }
      if (d.outcome != Outcome::kPlaced) break;
      placed[units_[done].member] = std::move(d);
    }
    if (done == units_.size()) {
      if (gathers_) arrange(scheduler_, placed);
      decisions_ = std::move(placed);
      return true;
    }
    failed_ = units_[done].demand;
    for (const Decision& d : placed)
      if (d.reservation != 0) (void)scheduler_.snapshot().release(d.reservation);
    return false;
  }

  bool may_use(NodeId node) const { return allowed_ == nullptr || (*allowed_)[node]; }

  // GPUs that nobody may share, so that no sum of shares hides them.
  std::int64_t whole_gpus() const {
    std::int64_t sum = 0;
    for (const GangUnit& unit : units_)
      for (const Ask& ask : scheduler_.demand(unit.demand).asks)
        sum += ask.kind == model::GpuKind::kWhole ? ask.count : 0;
    return sum;
  }

  std::int64_t room_of(std::size_t domain) const {
    std::int64_t free = 0;
    std::int64_t idle = 0;
    for (const NodeId node : tree_.domains()[domain].hosts) {
      if (!may_use(node)) continue;
      const NodeState& state =
          scheduler_.snapshot().index().state(scheduler_.snapshot().state_id(node));
      for (int i = 0; i < state.gpu_count; ++i) {
        free += std::max<int>(0, state.gpus[static_cast<std::size_t>(i)].cores);
        idle += state.gpus[static_cast<std::size_t>(i)].idle ? 1 : 0;
      }
    }
    return idle >= whole_gpus() ? free : -1;
  }

  // The domain's parts, roomiest first, and last the domain as a whole for nodes in none of them.
  std::vector<std::vector<NodeId>> sub_domains(std::size_t domain) const {
    std::vector<std::pair<std::int64_t, std::size_t>> by_room;
    for (const std::size_t child : tree_.domains()[domain].children)
      by_room.emplace_back(-room_of(child), child);
    std::sort(by_room.begin(), by_room.end());
    std::vector<std::vector<NodeId>> order;
    for (const auto& [room, child] : by_room) order.push_back(usable(child));
    order.push_back(usable(domain));
    return order;
  }

  std::vector<NodeId> usable(std::size_t domain) const {
    std::vector<NodeId> nodes;
    for (const NodeId node : tree_.domains()[domain].hosts)
      if (may_use(node)) nodes.push_back(node);
    return nodes;
  }

  Scheduler& scheduler_;
  const DomainTree& tree_;
  const std::vector<bool>* allowed_;
  std::vector<GangUnit> units_;
  std::vector<Decision> decisions_;
  std::optional<ClassId> failed_;
  std::int64_t gpus_ = 0;
  bool gathers_ = false;
};

}  // namespace

DomainTree domain_tree_of(const Snapshot& snapshot) {
  std::vector<model::HostPath> paths;
  for (NodeId node = 0; node < snapshot.size(); ++node)
    paths.push_back({snapshot.spec(node).name, snapshot.spec(node).domains});
  return DomainTree::of(paths);
}

Result<GangDecision> place_gang(Scheduler& scheduler, const DomainTree& tree, const Gang& gang,
                                const std::vector<bool>* allowed) {
  Search search(scheduler, tree, allowed);
  for (const GangMember& member : gang.members)
    if (Status ok = search.add(member); !ok) return ok.error();
  if (search.size() == 0) return Error{Errc::kInvalid, "gang " + gang.name + ": has no members"};
  search.sort();
  const std::size_t top = gang.required_level.value_or(0);
  if (top > tree.deepest())
    return Error{Errc::kInvalid, "gang " + gang.name + ": requires level " + std::to_string(top) +
                                     ", the tree has " + std::to_string(tree.deepest())};
  const std::size_t widest = gang.required_level ? tree.deepest() : 0;
  const std::size_t start =
      std::max(top, std::min(tree.deepest(), gang.preferred_level.value_or(widest)));
  if (const auto domain = search.place_on_one_node(top))
    return GangDecision{Outcome::kPlaced, std::move(search).decisions(), *domain, {}};
  for (std::size_t level = start + 1; level-- > top;) {
    for (const std::size_t domain : search.candidates(level)) {
      if (!search.place_in(domain)) continue;
      return GangDecision{Outcome::kPlaced, std::move(search).decisions(), domain, {}};
    }
  }
  GangDecision refused;
  refused.outcome = search.ever(top) ? Outcome::kNotNow : Outcome::kNever;
  refused.why = "gang " + gang.name + " of " + std::to_string(search.size()) +
                ": no domain of level " + std::to_string(top) +
                " holds all of it; one member alone: " + scheduler.explain(search.failed()).text();
  return refused;
}

}  // namespace aliquot::scheduler
