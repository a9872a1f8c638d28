// What a GPU and each tenant on it were promised, and the shares that follow from it.
//
// Pure values and functions; no thread rules. The numbers of the policies are cGPU's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace aliquot::gate {

enum class Policy : std::uint8_t {
  kFair = 0,        // 1/max_inst each; what is idle stays idle
  kPreemptive = 1,  // 1/N each of the N tenants that hold the GPU; theirs stays theirs
  kWeighted = 2,    // weight / weights of those that hold the GPU; theirs stays theirs
  kFixed = 3,       // cores, else weight/max_inst: exactly; the rest stays idle. qGPU fixed-share
  kSoft = 4,        // by weight; idle time is lent
  kNative = 5,      // no gate: the driver's time slices
  kBurst = 6,       // guarantees (cores); unreserved and idle time is lent. qGPU burst-share
  kBestEffort = 7,  // 1/N each of the N that work; idle time is lent. qGPU best-effort
};

enum class ShareClass : std::uint8_t { kOffline, kOnline };

struct GpuTerms {
  Policy policy = Policy::kBurst;
  std::uint32_t max_inst = 20;   // 1 to 25: units that the GPU is cut into
  std::uint32_t prio_ratio = 0;  // 20 to 99: what online tenants get at most; 0: everything
  Nanoseconds release = 100 * kMillisecond;  // of online idleness until offline goes on
  bool release_auto = false;  // from 2 to 100 ms, four times the longest offline kernel
  bool operator==(const GpuTerms&) const = default;
};

struct TenantTerms {
  double cores_percent = 0;  // guarantee (burst) or exact share (fixed, capped); 0: none
  std::uint32_t weight = 1;  // 1 to max_inst
  ShareClass share_class = ShareClass::kOffline;
  bool capped = false;         // never more than its share, whatever is idle
  std::uint32_t priority = 0;  // who goes first when several are due; never how much
  bool operator==(const TenantTerms&) const = default;
};

Status check(const GpuTerms& terms);
Status check(const TenantTerms& terms, const GpuTerms& gpu);

// Part of the GPU's time that is promised whatever the others do; 0: that depends on them.
double guaranteed_percent(const TenantTerms& terms, const GpuTerms& gpu);

struct Claim {
  TenantTerms terms;
  bool holds_gpu = false;  // a process of it has the GPU open
  bool active = false;     // it has work, or had until just now
};

struct Share {
  double percent = 0;   // of the device's time; relative where idle time is lent
  bool capped = false;  // `percent` of wall clock time, no more
  bool operator==(const Share&) const = default;
};

// One for each claim. Online tenants count apart only if prio_ratio is set: together they get it
// while one of them is active. Nobody has less than 1 %, except who is not to be counted (0).
std::vector<Share> shares_of(const GpuTerms& gpu, std::span<const Claim> claims);

// Whether unused time of one tenant goes to others.
bool lends_idle_time(Policy policy);

}  // namespace aliquot::gate
