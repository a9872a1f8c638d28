#include "scheduler/policy_topology_gang.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace aliquot::scheduler {
namespace {

using topology::GpuSet;
using topology::RailSet;
using Way = GangLinks::Way;
using Ways = std::vector<const Way*>;  // by spot, null where the links are not known

// The slowest hop, and how many GPUs of others are behind the rails.
std::pair<double, int> worth(const Ways& choice) {
  double slowest = std::numeric_limits<double>::infinity();
  int shared = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const Way* const here = choice[i];
    const Way* const next = choice[(i + 1) % choice.size()];
    if (here == nullptr) continue;
    shared -= here->shared;
    slowest = std::min(slowest, here->ring_mb_s);
    if (next != nullptr && here->rails != 0 && next->rails != 0)
      slowest = std::min(slowest, std::min(here->rail_mb_s, next->rail_mb_s) *
                                      topology::rails_worth(here->rails, next->rails, true));
  }
  return {slowest, shared};
}

void put(GangSpot& spot, const GangLinks& links, GpuSet gpus) {
  spot.gpus.clear();
  for (const unsigned gpu : links.table().shape().best_ring(gpus))
    spot.gpus.push_back(static_cast<int>(gpu));
}

}  // namespace

double Way::mb_s(RailSet peer) const {
  if (rails == 0) return ring_mb_s;
  const double out = peer == 0 ? std::popcount(rails) : topology::rails_worth(rails, peer, true);
  return std::min(ring_mb_s, rail_mb_s * out);
}

GangLinks::GangLinks(const model::NodeTopology& node,
                     std::shared_ptr<const topology::BestTable> table)
    : table_(std::move(table)), fabric_(node), rails_(node) {}

double GangLinks::rail_mb_s(GpuSet gpus) {
  const auto [found, is_new] = rail_mb_s_.try_emplace(gpus.bits(), 0);
  if (is_new)
    found->second = topology::fair_rates(fabric_.wires(), {rails_.traffic(fabric_, gpus)}).front();
  return found->second;
}

std::vector<Way> GangLinks::ways(GpuSet may, unsigned count) {
  const topology::Shape& shape = table_->shape();
  topology::Request request;
  request.count = count;
  request.free = may;
  std::map<RailSet, Way> best;
  for (std::uint32_t bits = may.bits(); bits != 0; bits = (bits - 1) & may.bits()) {
    const GpuSet gpus = GpuSet::from_bits(bits);
    if (gpus.size() != count) continue;
    Way way;
    way.gpus = gpus;
    way.rails = rails_.of(gpus);
    way.ring_mb_s = count > 1 ? shape.ring_mb_s(gpus) : std::numeric_limits<double>::infinity();
    way.rail_mb_s = way.rails == 0 ? 0 : rail_mb_s(gpus);
    way.shared = static_cast<int>((rails_.behind(way.rails) - may).size());
    way.rating = rating_of(shape, request, gpus);
    const auto [found, is_new] = best.try_emplace(way.rails, way);
    Way& before = found->second;
    const auto key = [](const Way& w) { return std::pair(w.mb_s(0), w.rating); };
    if (!is_new && (key(way) > key(before) ||
                    (key(way) == key(before) && topology::is_before(gpus, before.gpus))))
      before = way;
  }
  std::vector<Way> ways;
  for (auto& [rails, way] : best) ways.push_back(way);
  return ways;
}

const Way& best_way(std::span<const Way> ways, RailSet peer) {
  const auto key = [&](const Way& w) { return std::tuple(w.mb_s(peer), -w.shared, w.rating); };
  const Way* best = &ways.front();
  for (const Way& way : ways)
    if (key(way) > key(*best) ||
        (key(way) == key(*best) && topology::is_before(way.gpus, best->gpus)))
      best = &way;
  return *best;
}

void arrange_gang(std::span<GangSpot> gang, std::span<GangLinks* const> links) {
  // Many nodes are free alike.
  std::map<std::tuple<GangLinks*, GpuMask, std::size_t>, std::vector<Way>> known;
  std::vector<const std::vector<Way>*> ways(gang.size(), nullptr);
  for (std::size_t i = 0; i < gang.size(); ++i) {
    if (links[i] == nullptr) continue;
    const auto count = static_cast<unsigned>(gang[i].gpus.size());
    if (gang.size() == 1) {
      const GpuSet best = links[i]->table().best(GpuSet::from_bits(gang[i].may), count);
      return put(gang[i], *links[i], best);
    }
    const auto [found, is_new] = known.try_emplace({links[i], gang[i].may, count});
    if (is_new) found->second = links[i]->ways(GpuSet::from_bits(gang[i].may), count);
    ways[i] = &found->second;
  }
  const auto leader = std::ranges::find_if(ways, [](const auto* w) { return w != nullptr; });
  if (leader == ways.end()) return;
  // Every way out of the first node in turn, the others after it.
  Ways best;
  for (const Way& first : **leader) {
    Ways choice;
    for (const auto* options : ways)
      choice.push_back(options == nullptr ? nullptr : &best_way(*options, first.rails));
    if (best.empty() || worth(choice) > worth(best)) best = std::move(choice);
  }
  for (std::size_t i = 0; i < gang.size(); ++i)
    if (best[i] != nullptr) put(gang[i], *links[i], best[i]->gpus);
}

}  // namespace aliquot::scheduler
