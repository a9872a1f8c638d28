#include "topology/search.h"

#include <optional>
#include <string>

namespace aliquot::topology {
namespace {

// All sets are tried: at most 2^16, each rated from the shape's tables.
std::optional<GpuSet> best_among(const Shape& shape, const Request& request) {
  const GpuSet choosable = request.free - request.include - request.exclude;
  const unsigned more = request.count - request.include.size();
  std::optional<GpuSet> best;
  Rating best_rating;
  // Every subset of `choosable`, descending; the last one is empty.
  for (std::uint32_t bits = choosable.bits();; bits = (bits - 1) & choosable.bits()) {
    const GpuSet added = GpuSet::from_bits(bits);
    if (added.size() == more) {
      const GpuSet set = added | request.include;
      if (satisfies(shape, request, set)) {
        const Rating rating = rating_of(shape, request, set);
        const auto order = rating <=> best_rating;
        if (!best || order > 0 || (order == 0 && is_before(set, *best))) {
          best = set;
          best_rating = rating;
        }
      }
    }
    if (bits == 0) return best;
  }
}

std::string gpus(unsigned count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); }

std::string wish(const Request& request) {
  std::string text = gpus(request.count);
  if (request.one_clique) text += " joined pairwise by NVLink";
  if (request.one_numa_node) text += " of one NUMA node";
  if (!request.include.empty()) text += " with " + gpu_set_text(request.include);
  if (!request.exclude.empty()) text += " without " + gpu_set_text(request.exclude);
  return text;
}

// A fault in the request itself, whatever is free.
std::optional<Error> contradiction(const Shape& shape, const Request& request) {
  const auto never = [](std::string why) { return Error{Errc::kInvalid, std::move(why)}; };
  if (request.count == 0) return never("0 GPUs asked: ask for at least one");
  if (request.count > shape.size())
    return never(gpus(request.count) + " asked, this node has " + std::to_string(shape.size()));
  if (!shape.all().contains(request.free | request.include | request.exclude))
    return never("GPU " +
                 gpu_set_text((request.free | request.include | request.exclude) - shape.all()) +
                 " named, this node has " + gpus(shape.size()));
  if (!(request.include & request.exclude).empty())
    return never("GPU " + gpu_set_text(request.include & request.exclude) +
                 " is to be both included and excluded");
  if (request.include.size() > request.count)
    return never(gpus(request.count) + " asked, but " + std::to_string(request.include.size()) +
                 " must be included");
  return std::nullopt;
}

// Why nothing fits although the request makes sense.
Error refusal(const Shape& shape, const Request& request) {
  Request if_all_free = request;
  if_all_free.free = shape.all();
  if (!best_among(shape, if_all_free))
    return {Errc::kInvalid, "this node has no " + wish(request) + ", even with all GPUs free"};
  if (!request.free.contains(request.include))
    return {Errc::kExhausted,
            "GPU " + gpu_set_text(request.include - request.free) + " is not free"};
  const GpuSet usable = request.free - request.exclude;
  if (usable.size() < request.count)
    return {Errc::kExhausted, gpus(request.count) + " asked, free are " +
                                  std::to_string(usable.size()) + " (" + gpu_set_text(usable) +
                                  ")"};
  return {Errc::kExhausted,
          "free are " + gpu_set_text(request.free) + ", but among them no " + wish(request)};
}

}  // namespace

Rating rating_of(const Shape& shape, const Request& request, GpuSet chosen) {
  Rating rating;
  rating.ring_mb_s = shape.ring_mb_s(chosen);
  rating.pairs_mb_s = shape.pairs_mb_s(chosen);
  if (request.near_nics) rating.nic_nearness = shape.nic_nearness(chosen);
  if (request.near_numa) rating.same_numa_pairs = shape.same_numa_pairs(chosen);
  rating.whole = shape.whole(request.free - chosen);
  rating.latency_ns = shape.latency_ns(chosen);
  return rating;
}

bool satisfies(const Shape& shape, const Request& request, GpuSet set) {
  if (set.size() != request.count || !set.contains(request.include) ||
      !(set & request.exclude).empty())
    return false;
  if (request.one_numa_node && !shape.in_one_numa_node(set)) return false;
  return !request.one_clique || shape.is_clique(set);
}

Result<GpuSet> best_set(const Shape& shape, const Request& request) {
  if (auto fault = contradiction(shape, request)) return *std::move(fault);
  if (request.free.contains(request.include))
    if (const auto best = best_among(shape, request)) return *best;
  return refusal(shape, request);
}

}  // namespace aliquot::topology
