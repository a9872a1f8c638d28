// Admission: which GPUs a lease gets, or why it does not fit and what is free where.
//
// A GPU's room for new shares is what is neither promised to a lease nor measured as taken:
//   room = min(total - sum of limits, measured free - sum of (limit - used) not yet taken)
// Pure functions over values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "broker/gpu_probe.h"
#include "broker/lease.h"
#include "broker/requests.h"
#include "common/result.h"

namespace aliquot::broker {

// What leases hold of one GPU.
struct Promised {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint32_t cores = 0;  // guaranteed
};

// What one GPU has promised, and how it is shared.
struct GpuPromises {
  std::vector<Promised> shares;
  GpuSettings settings;
};

// Room on every GPU; `promised[i]` is on gpus[i].
std::vector<RoomRow> rooms(const std::vector<ProbedGpu>& gpus,
                           const std::vector<GpuPromises>& promised);

// Guarantee, in 1/100 %, that a claim has on a GPU shared like that.
std::uint32_t guaranteed_cores(const GpuSettings& settings, std::uint32_t cores,
                               std::uint32_t weight);

// Chooses `count` of the GPUs that fit, by index into `fitting`; given at least `count` of them.
using Chooser =
    std::function<std::vector<std::size_t>(const std::vector<RoomRow>& fitting, std::size_t count)>;

// The GPUs with least room (bytes, then cores, then index): what is left stays whole.
std::vector<std::size_t> least_room(const std::vector<RoomRow>& fitting, std::size_t count);

// What the shares of a request become, in PCI order. Errc::kExhausted: does not fit now, but would
// on empty GPUs; Errc::kInvalid and kNotFound: never.
Result<std::vector<LeaseGpu>> admit(const LeaseRequest& request, const std::vector<RoomRow>& rooms,
                                    const std::vector<ProbedGpu>& gpus, const Chooser& choose);

// Whether the lease's share may become `bytes`: `row` is its GPU, `own_bytes` its present limit.
Status admit_change(const RoomRow& row, std::uint64_t own_bytes, std::uint64_t bytes);

}  // namespace aliquot::broker
