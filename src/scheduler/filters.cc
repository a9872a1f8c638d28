#include "scheduler/filters.h"

#include <algorithm>
#include <array>
#include <bit>

#include "scheduler/mig.h"

namespace aliquot::scheduler {
namespace {

using model::GpuKind;
using model::LinkNeed;

bool model_passes(const NodeView& view, const Demand& demand) {
  return demand.asks.empty() || demand.gpu_models.empty() ||
         std::find(demand.gpu_models.begin(), demand.gpu_models.end(), view.shape.gpu.name) !=
             demand.gpu_models.end();
}

bool floor_passes(const NodeView& view, const Demand& demand) {
  const model::GpuModel& gpu = view.shape.gpu;
  return demand.asks.empty() ||
         (gpu.compute_capability >= demand.floor.compute_capability &&
          gpu.memory_bytes >= demand.floor.memory_bytes && gpu.tflops >= demand.floor.tflops);
}

bool latency_passes(const NodeView& view, const Demand& demand) {
  return demand.max_latency_us == 0 || view.shape.latency_us <= demand.max_latency_us;
}

bool profile_passes(const NodeView& view, const Demand& demand) {
  return std::all_of(demand.asks.begin(), demand.asks.end(), [&](const Ask& ask) {
    return ask.kind != GpuKind::kMig || mig_profile(view.shape, ask.mig_profile) != nullptr;
  });
}

bool count_passes(const NodeView& view, const Demand& demand) {
  const int mig = std::popcount(view.shape.mig_gpus);
  int whole = 0;
  int most_shares = 0;
  for (const Ask& ask : demand.asks) {
    if (ask.kind == GpuKind::kMig && mig == 0) return false;
    if (ask.kind == GpuKind::kWhole) whole += ask.count;
    if (ask.kind == GpuKind::kShare) most_shares = std::max(most_shares, ask.count);
  }
  return whole + most_shares <= view.shape.gpu_count - mig;
}

bool size_passes(const NodeView& view, const Demand& demand) {
  return std::all_of(demand.asks.begin(), demand.asks.end(), [&](const Ask& ask) {
    return memory_need(ask, view.shape) <= view.shape.memory_capacity() &&
           ask.cores_milli <= view.shape.cores_capacity();
  });
}

bool links_pass(const NodeView& view, const Demand& demand) {
  // Which GPUs are tied is known by the link shape; a node without one can promise nothing.
  return demand.links == LinkNeed::kAny || demand.gpus() < 2 || !view.shape.topology.empty();
}

bool cpu_passes(const NodeView& view, const Demand& demand) {
  return view.state.cpu_milli >= demand.cpu_milli;
}

template <GpuKind kKind>
bool gpus_pass(const NodeView& view, const Demand& demand) {
  return std::all_of(demand.asks.begin(), demand.asks.end(), [&](const Ask& ask) {
    return ask.kind != kKind ||
           std::popcount(fitting_gpus(view.state, view.shape, ask)) >= ask.count;
  });
}

bool slices_pass(const NodeView& view, const Demand& demand) {
  return std::all_of(demand.asks.begin(), demand.asks.end(), [&](const Ask& ask) {
    return ask.kind != GpuKind::kMig || !choose_slices(view, ask).empty();
  });
}

struct Filter {
  Refusal refusal;
  bool may_pass;  // when others leave
  bool (*passes)(const NodeView& view, const Demand& demand);
};

constexpr std::array kFilters{
    Filter{Refusal::kGpuModel, false, model_passes},
    Filter{Refusal::kFloor, false, floor_passes},
    Filter{Refusal::kLatency, false, latency_passes},
    Filter{Refusal::kMigProfile, false, profile_passes},
    Filter{Refusal::kGpuCount, false, count_passes},
    Filter{Refusal::kGpuSize, false, size_passes},
    Filter{Refusal::kLinks, false, links_pass},
    Filter{Refusal::kCpu, true, cpu_passes},
    Filter{Refusal::kGpusBusy, true, gpus_pass<GpuKind::kWhole>},
    Filter{Refusal::kGpuRoom, true, gpus_pass<GpuKind::kShare>},
    Filter{Refusal::kMigSlices, true, slices_pass},
};

std::string names_of(const std::vector<std::string>& models) {
  std::string all;
  for (const std::string& name : models) all += (all.empty() ? "" : " or ") + name;
  return all;
}

int idle_gpus(const NodeView& view) {
  int idle = 0;
  for (int i = 0; i < view.state.gpu_count; ++i)
    idle += view.state.gpus[static_cast<std::size_t>(i)].idle ? 1 : 0;
  return idle;
}

std::string room_words(const NodeView& view, const Demand& demand) {
  const auto ask = std::find_if(demand.asks.begin(), demand.asks.end(),
                                [](const Ask& a) { return a.kind == GpuKind::kShare; });
  if (ask == demand.asks.end()) return "no GPU with room for the share";
  const int fit = std::popcount(fitting_gpus(view.state, view.shape, *ask));
  return std::to_string(fit) + " GPUs with room for the share, " + std::to_string(ask->count) +
         " asked";
}

}  // namespace

std::optional<Refusal> refusal(const NodeView& view, const Demand& demand) {
  for (const Filter& filter : kFilters)
    if (!filter.passes(view, demand)) return filter.refusal;
  return std::nullopt;
}

bool may_pass(Refusal refusal) {
  for (const Filter& filter : kFilters)
    if (filter.refusal == refusal) return filter.may_pass;
  return refusal != Refusal::kOutside;
}

std::string words(Refusal refusal, const NodeView& view, const Demand& demand) {
  switch (refusal) {
    case Refusal::kGpuModel:
      return (view.shape.gpu_count == 0 ? "no GPU" : view.shape.gpu.name + " GPUs") + ", " +
             names_of(demand.gpu_models) + " asked";
    case Refusal::kFloor:
      return view.shape.gpu.name + " GPUs are below a floor asked, or not known to meet it";
    case Refusal::kLatency:
      return "latency " + std::to_string(view.shape.latency_us) + " us, at most " +
             std::to_string(demand.max_latency_us) + " us asked";
    case Refusal::kMigProfile:
      return "no MIG profile of that name";
    case Refusal::kGpuCount:
      return std::to_string(view.shape.gpu_count) + " GPUs in all, " +
             std::to_string(demand.gpus()) + " asked";
    case Refusal::kGpuSize:
      return view.shape.gpu.name + " GPUs are smaller than the share asked";
    case Refusal::kLinks:
      return std::to_string(idle_gpus(view)) + " GPUs free, none " +
             (demand.links == LinkNeed::kNvlink ? "pair by NVLink" : "share a NUMA node");
    case Refusal::kCpu:
      return "too little CPU free";
    case Refusal::kGpusBusy:
      return std::to_string(idle_gpus(view)) + " GPUs free, " + std::to_string(demand.gpus()) +
             " asked";
    case Refusal::kGpuRoom:
      return room_words(view, demand);
    case Refusal::kMigSlices:
      return "no room for the MIG slices";
    case Refusal::kTogether:
      return "each container fits alone, not all together";
    case Refusal::kCordoned:
      return "cordoned";
    case Refusal::kPods:
      return "no pod slot free";
    case Refusal::kMemory:
      return "too little memory free";
    case Refusal::kOutside:
      return "not among the nodes allowed";
  }
  return "refused";
}

}  // namespace aliquot::scheduler
