#include "gate/terms.h"

#include <algorithm>
#include <string>

namespace aliquot::gate {
namespace {

constexpr double kLeastPercent = 1.0;
constexpr std::uint32_t kMostInstances = 25;

// Those with cores get them; the others share what is left by weight, but each at least 1 %.
void share_guarantees(std::span<const Claim> claims, std::vector<Share>& shares) {
  double reserved = 0;
  double weights = 0;
  for (const Claim& claim : claims) {
    reserved += claim.terms.cores_percent;
    if (claim.terms.cores_percent <= 0) weights += claim.terms.weight;
  }
  const double rest = std::max(0.0, 100.0 - reserved);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const TenantTerms& terms = claims[i].terms;
    const double percent =
        terms.cores_percent > 0 ? terms.cores_percent : rest * terms.weight / weights;
    shares[i] = {std::max(kLeastPercent, percent), terms.capped};
  }
}

// By `weight_of`, over the claims that `counts` names; the others get nothing.
template <typename Counts, typename WeightOf>
void share_by(std::span<const Claim> claims, std::vector<Share>& shares, Counts counts,
              WeightOf weight_of) {
  double sum = 0;
  for (const Claim& claim : claims) sum += counts(claim) ? weight_of(claim) : 0.0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!counts(claims[i])) continue;
    shares[i].percent = std::max(kLeastPercent, 100.0 * weight_of(claims[i]) / sum);
  }
}

double weight_of(const Claim& claim) { return claim.terms.weight; }
double one(const Claim&) { return 1.0; }
bool everybody(const Claim&) { return true; }
bool holder(const Claim& claim) { return claim.holds_gpu; }

std::vector<Share> shares_by_policy(const GpuTerms& gpu, std::span<const Claim> claims) {
  std::vector<Share> shares(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    shares[i].capped = claims[i].terms.capped || !lends_idle_time(gpu.policy);
  }
  const double unit = 100.0 / gpu.max_inst;
  switch (gpu.policy) {
    case Policy::kFair:
      for (Share& share : shares) share.percent = unit;
      break;
    case Policy::kFixed:
      for (std::size_t i = 0; i < claims.size(); ++i) {
        const TenantTerms& terms = claims[i].terms;
        shares[i].percent = terms.cores_percent > 0 ? terms.cores_percent : unit * terms.weight;
      }
      break;
    case Policy::kPreemptive:
      share_by(claims, shares, holder, one);
      break;
    case Policy::kWeighted:
      share_by(claims, shares, holder, weight_of);
      break;
    case Policy::kSoft:
      share_by(claims, shares, everybody, weight_of);
      break;
    case Policy::kBestEffort:
    case Policy::kNative:
      share_by(claims, shares, everybody, one);
      break;
    case Policy::kBurst:
      share_guarantees(claims, shares);
      break;
  }
  return shares;
}

}  // namespace

bool lends_idle_time(Policy policy) {
  return policy == Policy::kSoft || policy == Policy::kBurst || policy == Policy::kBestEffort ||
         policy == Policy::kNative;
}

Status check(const GpuTerms& terms) {
  if (terms.policy > Policy::kBestEffort) {
    return Error{Errc::kInvalid, "policy " + std::to_string(static_cast<unsigned>(terms.policy)) +
                                     ": give a number from 0 to 7, or a name"};
  }
  if (terms.max_inst < 1 || terms.max_inst > kMostInstances) {
    return Error{Errc::kInvalid,
                 "max-inst " + std::to_string(terms.max_inst) + ": give a number from 1 to 25"};
  }
  if (terms.prio_ratio != 0 && (terms.prio_ratio < 20 || terms.prio_ratio > 99)) {
    return Error{Errc::kInvalid, "prio-ratio " + std::to_string(terms.prio_ratio) +
                                     ": give a percentage from 20 to 99, or 0 for all"};
  }
  if (terms.release < 0 || terms.release > 10 * kSecond) {
    return Error{Errc::kInvalid, "release: give a time from 0 to 10 s, or auto"};
  }
  return {};
}

Status check(const TenantTerms& terms, const GpuTerms& gpu) {
  if (terms.cores_percent < 0 || terms.cores_percent > 100) {
    return Error{Errc::kInvalid, "cores: give a percentage from 0 to 100"};
  }
  if (terms.weight < 1 || terms.weight > gpu.max_inst) {
    return Error{Errc::kInvalid, "weight " + std::to_string(terms.weight) +
                                     ": give a number from 1 to max-inst (" +
                                     std::to_string(gpu.max_inst) + ")"};
  }
  if (terms.capped && terms.cores_percent <= 0 && gpu.policy == Policy::kBurst) {
    return Error{Errc::kInvalid, "cap without cores: say how much with --cores"};
  }
  return {};
}

double guaranteed_percent(const TenantTerms& terms, const GpuTerms& gpu) {
  const double unit = 100.0 / gpu.max_inst;
  switch (gpu.policy) {
    case Policy::kFair:
      return unit;
    case Policy::kFixed:
      return terms.cores_percent > 0 ? terms.cores_percent : unit * terms.weight;
    case Policy::kBurst:
      return terms.cores_percent;
    default:
      return 0;
  }
}

std::vector<Share> shares_of(const GpuTerms& gpu, std::span<const Claim> claims) {
  const auto online = [](const Claim& claim) {
    return claim.terms.share_class == ShareClass::kOnline;
  };
  std::vector<Claim> groups[2];
  for (const Claim& claim : claims) groups[online(claim) ? 1 : 0].push_back(claim);
  const bool split = gpu.prio_ratio > 0;
  if (!split && groups[1].empty()) return shares_by_policy(gpu, claims);

  const bool working = std::ranges::any_of(groups[1], [](const Claim& c) { return c.active; });
  const double ratio = split && working ? gpu.prio_ratio : 0.0;
  const std::vector<Share> offline = shares_by_policy(gpu, groups[0]);
  std::vector<Share> result(claims.size());
  double weights = 0;
  for (const Claim& claim : groups[1]) weights += claim.terms.weight;
  std::size_t next = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (online(claims[i])) {
      // Without a ratio online tenants compete freely: this only orders them.
      const double group = split ? static_cast<double>(gpu.prio_ratio) : 100.0;
      const bool capped = claims[i].terms.capped || (split && !lends_idle_time(gpu.policy));
      result[i] = {group * claims[i].terms.weight / weights, capped};
    } else {
      result[i] = offline[next++];
      result[i].percent *= (100.0 - ratio) / 100.0;
    }
  }
  return result;
}

}  // namespace aliquot::gate
