#include "replay/pace.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "replay/gpu_speed.h"

namespace aliquot::replay {
namespace {

using topology::Traffic;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Of a GPU whose users want more than there is: each its guarantee, the rest by weight. `mine` is
// the first of them.
struct User {
  double wants = 0;
  double weight = 0;
};

double burst_share(const std::vector<User>& users) {
  constexpr double kGpu = model::kWholeGpuMilli;
  double left = kGpu;
  std::vector<double> got(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) {
    got[i] = std::min(users[i].wants, users[i].weight);
    left -= got[i];
  }
  // Rounds of the rest by weight; each satisfies somebody or gives all away.
  for (std::size_t round = 0; round < users.size() && left > 1e-9; ++round) {
    double weights = 0;
    for (std::size_t i = 0; i < users.size(); ++i)
      if (got[i] < users[i].wants) weights += std::max(users[i].weight, 1.0);
    if (weights == 0) break;
    const double rest = left;
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (got[i] >= users[i].wants) continue;
      const double more =
          std::min(users[i].wants - got[i], rest * std::max(users[i].weight, 1.0) / weights);
      got[i] += more;
      left -= more;
    }
  }
  return got[0];
}

}  // namespace

Pace::Pace(const Cluster& cluster, const Trace& trace, TimeModel model)
    : cluster_(cluster), trace_(trace), model_(model), on_node_(cluster.nodes.size()) {
  // A shape that cannot be searched is as good as unknown.
  for (const auto& [name, node] : cluster.topologies)
    if (Result<NodeLinks> links = NodeLinks::of(node))
      links_.emplace(name, std::make_unique<NodeLinks>(*std::move(links)));
}

NodeLinks* Pace::links(std::size_t node) {
  const auto found = links_.find(cluster_.nodes[node].topology);
  return found == links_.end() ? nullptr : found->second.get();
}

Pace::Part Pace::part_of(const Job& job, const model::Placement& placement) const {
  Part part;
  part.node = static_cast<std::size_t>(placement.node);
  const model::Bytes memory = cluster_.nodes[part.node].gpu.memory_bytes;
  for (const model::GpuPart& gpu : placement.gpus) {
    part.gpus.insert(static_cast<unsigned>(gpu.gpu));
    part.weight = gpu.whole ? model::kWholeGpuMilli : gpu.cores_milli;
    part.used = part.weight;
    if (part.used == 0 && memory > 0)  // a share of memory only: as large a part of the compute
      part.used =
          std::ceil(1000.0 * static_cast<double>(gpu.memory_bytes) / static_cast<double>(memory));
  }
  if (job.work.used_milli > 0) part.used = job.work.used_milli;
  return part;
}

std::vector<Pace::Spot> Pace::spots_of(const std::vector<Part>& parts) {
  std::vector<Spot> spots;
  for (const Part& part : parts) {
    auto spot = std::ranges::find(spots, part.node, &Spot::node);
    if (spot == spots.end()) spot = spots.insert(spot, {part.node, {}, {}});
    spot->gpus = spot->gpus | part.gpus;
  }
  return spots;
}

double Pace::used_milli(std::size_t id) const {
  const Running& running = running_.at(id);
  const Part& part = running.parts.front();
  const double ratio =
      model_ == TimeModel::kAsListed
          ? 1.0
          : speed_ratio(cluster_.nodes[part.node].gpu.name, trace_.jobs[id].work.gpu_model);
  return part.used / ratio;
}

void Pace::touch(const Running& running, std::vector<std::size_t>& touched) const {
  if (model_ == TimeModel::kAsListed) return;
  for (const Part& part : running.parts)
    touched.insert(touched.end(), on_node_[part.node].begin(), on_node_[part.node].end());
  std::ranges::sort(touched);
  touched.erase(std::ranges::unique(touched).begin(), touched.end());
}

void Pace::start(std::size_t id, std::span<const model::Placement> placements,
                 std::vector<std::size_t>& touched) {
  const Job& job = trace_.jobs[id];
  Running running;
  unsigned gpus = 0;
  for (const model::Placement& placement : placements) {
    running.parts.push_back(part_of(job, placement));
    gpus += running.parts.back().gpus.size();
  }
  running.spots = spots_of(running.parts);
  if (gpus > 1)
    running.hop_mb = 2.0 * (gpus - 1) / gpus * static_cast<double>(job.work.all_reduce_mb_s);
  if (model_ == TimeModel::kModelled) note_means(id, running);
  if (gpus > 0)
    for (const Part& part : running.parts) {
      std::vector<std::size_t>& there = on_node_[part.node];
      if (std::ranges::find(there, id) == there.end()) there.push_back(id);
    }
  touched.push_back(id);
  touch(running, touched);
  running_.emplace(id, std::move(running));
}

void Pace::end(std::size_t id, std::vector<std::size_t>& touched) {
  const auto found = running_.find(id);
  for (const Part& part : found->second.parts) std::erase(on_node_[part.node], id);
  touch(found->second, touched);
  running_.erase(found);
}

double Pace::speed(std::size_t id) {
  if (model_ == TimeModel::kAsListed) return 1.0;
  return 1.0 / seconds(id, running_.at(id), Company::kAsNow);
}

double Pace::seconds(std::size_t id, const Running& running, Company company) {
  const Job& job = trace_.jobs[id];
  double busy = 0;
  for (const Part& part : running.parts)
    busy = std::max({busy, compute_s(job, part, company), reading_s(job, id, part, company)});
  if (running.hop_mb == 0) return busy;
  return busy + running.hop_mb / hop_mb_s(id, running, company);
}

double Pace::compute_s(const Job& job, const Part& part, Company company) const {
  double least = 1.0;
  if (company == Company::kAsNow && part.used > 0)
    for (const unsigned gpu : part.gpus) least = std::min(least, got(part, gpu) / part.used);
  return 1.0 / (least * speed_ratio(cluster_.nodes[part.node].gpu.name, job.work.gpu_model));
}

// Milli of the GPU that the job gets beside its neighbours.
double Pace::got(const Part& part, unsigned gpu) const {
  std::vector<User> users{{part.used, part.weight}};
  double wanted = part.used;
  for (const std::size_t other : on_node_[part.node])
    for (const Part& theirs : running_.at(other).parts)
      if (&theirs != &part && theirs.node == part.node && theirs.gpus.contains(gpu)) {
        users.push_back({theirs.used, theirs.weight});
        wanted += theirs.used;
      }
  return wanted <= model::kWholeGpuMilli ? part.used : burst_share(users);
}

double Pace::rate(std::size_t id, std::size_t node, const Traffic& mine, Company company) {
  std::vector<Traffic> all{mine};
  if (company == Company::kAsNow)
    for (const std::size_t other : on_node_[node])
      if (other != id)
        for (const Spot& spot : running_.at(other).spots)
          if (spot.node == node) all.insert(all.end(), spot.mean.begin(), spot.mean.end());
  return topology::fair_rates(links(node)->fabric().wires(), all)[0];
}

double Pace::reading_s(const Job& job, std::size_t id, const Part& part, Company company) {
  NodeLinks* const node = links(part.node);
  if (job.work.read_mb_s == 0 || node == nullptr) return 0;
  double slowest = kUnbounded;
  for (const unsigned gpu : part.gpus)
    slowest = std::min(slowest, rate(id, part.node, node->into(gpu), company));
  return static_cast<double>(job.work.read_mb_s) / slowest;
}

double Pace::hop_mb_s(std::size_t id, const Running& running, Company company) {
  double slowest = kUnbounded;
  const std::size_t spots = running.spots.size();
  for (std::size_t i = 0; i < spots; ++i) {
    const Spot& spot = running.spots[i];
    NodeLinks* const node = links(spot.node);
    if (node != nullptr && spot.gpus.size() > 1)
      slowest = std::min(slowest, rate(id, spot.node, node->ring(spot.gpus), company));
    if (spots > 1)
      slowest = std::min(slowest, network_mb_s(id, spot, running.spots[(i + 1) % spots], company));
  }
  return slowest;
}

// From a node to the next one: the rails both have, at full rate, and the others over the spine.
double Pace::network_mb_s(std::size_t id, const Spot& one, const Spot& next, Company company) {
  NodeLinks* const from = links(one.node);
  NodeLinks* const to = links(next.node);
  if (from == nullptr || to == nullptr) return kUnknownNicMbS;
  const topology::RailSet here = from->rails(one.gpus);
  const topology::RailSet there = to->rails(next.gpus);
  if (here == 0 || there == 0) return kUnknownNicMbS;
  const double a_rail = std::min(rate(id, one.node, from->over_rails(one.gpus), company),
                                 rate(id, next.node, to->over_rails(next.gpus), company));
  const model::NodeSpec& a = cluster_.nodes[one.node];
  const model::NodeSpec& b = cluster_.nodes[next.node];
  const bool one_leaf = a.domains == b.domains && a.topology == b.topology;
  return a_rail * topology::rails_worth(here, there, one_leaf);
}

// What others will count this job for: the rates that it has in the mean when it is alone.
void Pace::note_means(std::size_t id, Running& running) {
  const Job& job = trace_.jobs[id];
  if (running.hop_mb == 0 && job.work.read_mb_s == 0) return;
  const double alone = seconds(id, running, Company::kAlone);
  const auto bounded = [&](Traffic traffic, double mb, Spot& spot) {
    traffic.most_mb_s = std::min(traffic.most_mb_s, mb / alone);
    if (!traffic.uses.empty()) spot.mean.push_back(std::move(traffic));
  };
  for (Spot& spot : running.spots) {
    NodeLinks* const node = links(spot.node);
    if (node == nullptr) continue;
    if (running.hop_mb > 0 && spot.gpus.size() > 1)
      bounded(node->ring(spot.gpus), running.hop_mb, spot);
    const int rails = std::popcount(node->rails(spot.gpus));
    if (running.hop_mb > 0 && running.spots.size() > 1 && rails > 0)
      bounded(node->over_rails(spot.gpus), running.hop_mb / rails, spot);
    if (job.work.read_mb_s == 0) continue;
    for (const Part& part : running.parts)
      if (part.node == spot.node)
        for (const unsigned gpu : part.gpus)
          bounded(node->into(gpu), static_cast<double>(job.work.read_mb_s), spot);
  }
}

}  // namespace aliquot::replay
