#include "scheduler/demand.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace aliquot::scheduler {
namespace {

using model::GpuKind;

Status check(const model::Container& c) {
  auto wrong = [&](std::string what) {
    return Error{Errc::kInvalid, "container '" + c.name + "': " + std::move(what)};
  };
  if (c.cpu_milli < 0 || c.memory_bytes < 0) return wrong("negative cpu or memory");
  if (!c.gpu) return {};
  const model::GpuAsk& ask = *c.gpu;
  if (ask.count < 1 || ask.count > model::kMaxGpusPerNode)
    return wrong("asks for " + std::to_string(ask.count) + " GPUs, 1 to " +
                 std::to_string(model::kMaxGpusPerNode) + " fit one node");
  if (ask.cores_milli < 0 || ask.cores_milli > model::kWholeGpuMilli)
    return wrong("cores are 0 to 1000 thousandths of a GPU");
  if (ask.memory_bytes < 0 || ask.memory_percent < 0 || ask.memory_percent > 100)
    return wrong("GPU memory is at least 0 bytes and 0 to 100 percent");
  if ((ask.kind == GpuKind::kMig) == ask.mig_profile.empty())
    return wrong("a MIG slice needs a profile, and only a MIG slice has one");
  return {};
}

// A slot that names neither memory nor compute is a whole GPU.
GpuKind kind_of(const model::GpuAsk& ask) {
  const bool plain = ask.cores_milli == 0 && ask.memory_bytes == 0 && ask.memory_percent == 0;
  return ask.kind == GpuKind::kShare && plain ? GpuKind::kWhole : ask.kind;
}

Ask ask_of(const model::GpuAsk& from, int container) {
  return {kind_of(from),       from.count,       from.cores_milli, from.memory_bytes,
          from.memory_percent, from.mig_profile, container};
}

// An init container reuses the GPUs of the containers, so an ask of the same kind grows to cover
// it.
void cover(std::vector<Ask>& asks, const Ask& init) {
  auto same = std::find_if(asks.begin(), asks.end(), [&](const Ask& a) {
    return a.kind == init.kind && a.mig_profile == init.mig_profile;
  });
  if (same == asks.end()) {
    asks.push_back(init);
    return;
  }
  same->count = std::max(same->count, init.count);
  same->cores_milli = std::max(same->cores_milli, init.cores_milli);
  same->memory_bytes = std::max(same->memory_bytes, init.memory_bytes);
  same->memory_percent = std::max(same->memory_percent, init.memory_percent);
}

int hardness(GpuKind kind) { return kind == GpuKind::kWhole ? 0 : kind == GpuKind::kMig ? 1 : 2; }

bool harder(const Ask& a, const Ask& b) {
  return std::tuple(hardness(a.kind), -a.cores_milli, -a.memory_bytes, -a.memory_percent, -a.count,
                    a.container) < std::tuple(hardness(b.kind), -b.cores_milli, -b.memory_bytes,
                                              -b.memory_percent, -b.count, b.container);
}

void mix(std::size_t& seed, std::size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
}

}  // namespace

DemandKind Demand::kind() const {
  if (asks.empty()) return DemandKind::kCpuOnly;
  if (asks.front().kind == GpuKind::kMig) return DemandKind::kMig;
  if (asks.front().kind == GpuKind::kShare) return DemandKind::kShare;
  const int count = asks.front().count;
  if (count == 1) return DemandKind::kOne;
  if (count == 2) return DemandKind::kTwo;
  if (count <= 4) return DemandKind::kFour;
  return count <= 8 ? DemandKind::kEight : DemandKind::kMore;
}

int Demand::gpus() const {
  int sum = 0;
  for (const Ask& ask : asks) sum += ask.count;
  return sum;
}

Result<Demand> demand_of(const model::Request& request) {
  Demand demand;
  std::vector<Ask> inits;
  for (std::size_t i = 0; i < request.containers.size(); ++i) {
    const model::Container& c = request.containers[i];
    if (Status ok = check(c); !ok) return ok.error();
    demand.cpu_milli += c.cpu_milli;
    demand.memory_bytes += c.memory_bytes;
    if (c.gpu) demand.asks.push_back(ask_of(*c.gpu, static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < request.init_containers.size(); ++i) {
    const model::Container& c = request.init_containers[i];
    if (Status ok = check(c); !ok) return ok.error();
    demand.cpu_milli = std::max(demand.cpu_milli, c.cpu_milli);
    demand.memory_bytes = std::max(demand.memory_bytes, c.memory_bytes);
    if (c.gpu) cover(demand.asks, ask_of(*c.gpu, static_cast<int>(request.containers.size() + i)));
  }
  std::sort(demand.asks.begin(), demand.asks.end(), harder);
  demand.gpu_models = request.gpu_models;
  std::sort(demand.gpu_models.begin(), demand.gpu_models.end());
  demand.floor = request.floor;
  demand.links = request.links;
  demand.max_latency_us = request.max_latency_us;
  return demand;
}

std::size_t hash_of(const Demand& d) {
  std::size_t seed = std::hash<std::int64_t>()(d.cpu_milli);
  mix(seed, static_cast<std::size_t>(d.memory_bytes));
  for (const Ask& a : d.asks) {
    mix(seed, static_cast<std::size_t>(a.kind));
    mix(seed, static_cast<std::size_t>(a.count));
    mix(seed, static_cast<std::size_t>(a.cores_milli));
    mix(seed, static_cast<std::size_t>(a.memory_bytes));
    mix(seed, static_cast<std::size_t>(a.memory_percent));
    mix(seed, std::hash<std::string>()(a.mig_profile));
  }
  for (const std::string& name : d.gpu_models) mix(seed, std::hash<std::string>()(name));
  mix(seed, static_cast<std::size_t>(d.max_latency_us));
  mix(seed, static_cast<std::size_t>(d.floor.memory_bytes));
  mix(seed, static_cast<std::size_t>(d.over_nodes));
  mix(seed, static_cast<std::size_t>(d.peer_rails));
  return seed;
}

}  // namespace aliquot::scheduler
