#include "scheduler/policy_topology.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "scheduler/policy_parts.h"
#include "scheduler/policy_topology_gang.h"
#include "topology/best_table.h"

namespace aliquot::scheduler {
namespace {

using model::GpuKind;
using model::LinkNeed;
using topology::BestTable;
using topology::GpuSet;

constexpr std::uint32_t kMostRing = 1'023;  // GB/s that still count; ten bits of the score

class Topology final : public Policy {
 public:
  explicit Topology(const std::map<std::string, model::NodeTopology>& shapes) {
    // A shape that cannot be searched is as good as unknown.
    for (const auto& [name, node] : shapes)
      if (auto table = tables_.table_for(node))
        by_name_.emplace(name, Links{*table, std::make_unique<GangLinks>(node, *table)});
  }

  std::string_view name() const override { return "topology"; }
  StateParts reads() const override {
    return {.positions = true, .kinds = false, .measured = false};
  }

  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const BestTable* table = table_of(view.shape);
    if (demand.over_nodes && table != nullptr) return over_nodes(view, demand, ask, fitting);
    if (ask.count > 1 && demand.links != LinkNeed::kAny)
      return table == nullptr ? Choice{} : tied(*table, view, demand, ask, fitting);
    if (ask.kind == GpuKind::kShare) return shared(table, view, demand, ask, fitting);
    if (table == nullptr) return scored(nullptr, view, demand, ask, first_of(fitting, ask.count));
    const auto count = static_cast<unsigned>(ask.count);
    return scored(table, view, demand, ask, table->best(GpuSet::from_bits(fitting), count).bits());
  }

  bool arranges_gangs() const override { return true; }

  void arrange(std::span<GangSpot> gang) override {
    std::vector<GangLinks*> links;
    for (const GangSpot& spot : gang) {
      const Links* const known = links_of(spot.view.shape);
      links.push_back(known == nullptr ? nullptr : known->of_gangs.get());
    }
    arrange_gang(gang, links);
  }

  std::uint64_t rails(const NodeShape& shape, GpuMask gpus) const override {
    const Links* const links = links_of(shape);
    return links == nullptr ? 0 : links->of_gangs->rails().of(GpuSet::from_bits(gpus));
  }

  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {fullness(view, demand, nullptr), 0, 0};
  }

 private:
  struct Links {
    std::shared_ptr<const BestTable> table;  // tables_ gives one to all nodes of equal shape
    std::unique_ptr<GangLinks> of_gangs;
  };

  const Links* links_of(const NodeShape& shape) const {
    const auto found = by_name_.find(shape.topology);
    if (found == by_name_.end()) return nullptr;
    const unsigned known = found->second.table->shape().size();
    return known == static_cast<unsigned>(shape.gpu_count) ? &found->second : nullptr;
  }
  const BestTable* table_of(const NodeShape& shape) const {
    const Links* const links = links_of(shape);
    return links == nullptr ? nullptr : links->table.get();
  }

  // The best way out of the node first, the one that fewest others use, then the fullest node.
  Choice over_nodes(const NodeView& view, const Demand& demand, const Ask& ask, GpuMask fitting) {
    const auto ways =
        links_of(view.shape)
            ->of_gangs->ways(GpuSet::from_bits(fitting), static_cast<unsigned>(ask.count));
    const GangLinks::Way& way = best_way(ways, demand.peer_rails);
    const auto mb_s = std::min(way.mb_s(demand.peer_rails), kMostRing * 1'000.0);
    const auto half_gb_s = static_cast<Score>(mb_s / 500);
    return {(half_gb_s << 15) + ((model::kMaxGpusPerNode - way.shared) << 10) +
                fullness(view, demand, &ask),
            way.gpus.bits(), 0};
  }

  // The widest ring first, then the fullest node.
  static Choice scored(const BestTable* table, const NodeView& view, const Demand& demand,
                       const Ask& ask, GpuMask gpus) {
    std::uint32_t ring = 0;
    if (table != nullptr && ask.count > 1)
      ring = std::min(kMostRing, table->shape().ring_mb_s(GpuSet::from_bits(gpus)) / 1'000);
    return {static_cast<Score>(ring << 10) + fullness(view, demand, &ask), gpus, 0};
  }

  static Choice tied(const BestTable& table, const NodeView& view, const Demand& demand,
                     const Ask& ask, GpuMask fitting) {
    topology::Request request;
    request.count = static_cast<unsigned>(ask.count);
    request.free = GpuSet::from_bits(fitting);
    request.one_clique = demand.links == LinkNeed::kNvlink;
    request.one_numa_node = demand.links == LinkNeed::kSameNuma;
    const Result<GpuSet> best = topology::best_set(table.shape(), request);
    return best ? scored(&table, view, demand, ask, best->bits()) : Choice{};
  }

  static Choice shared(const BestTable* table, const NodeView& view, const Demand& demand,
                       const Ask& ask, GpuMask fitting) {
    GpuMask in_use = fitting;
    for (GpuMask rest = fitting; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (view.state.gpus[static_cast<std::size_t>(i)].idle) in_use &= ~(GpuMask{1} << i);
    }
    if (std::popcount(in_use) >= ask.count)
      return scored(nullptr, view, demand, ask,
                    least_free(view.state, view.shape, in_use, ask.count));
    if (ask.count == 1 && table != nullptr)
      return scored(table, view, demand, ask, table->best(GpuSet::from_bits(fitting), 1).bits());
    return scored(table, view, demand, ask, least_free(view.state, view.shape, fitting, ask.count));
  }

  topology::ShapeTables tables_;
  std::unordered_map<std::string, Links> by_name_;
};

}  // namespace

std::unique_ptr<Policy> make_topology(const std::map<std::string, model::NodeTopology>& shapes) {
  return std::make_unique<Topology>(shapes);
}

}  // namespace aliquot::scheduler
