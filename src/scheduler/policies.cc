#include "scheduler/policies.h"

#include <array>
#include <string>

#include "scheduler/policy_best_fit.h"
#include "scheduler/policy_binpack.h"
#include "scheduler/policy_clustering.h"
#include "scheduler/policy_dot_product.h"
#include "scheduler/policy_fgd.h"
#include "scheduler/policy_packing.h"
#include "scheduler/policy_quiet.h"
#include "scheduler/policy_random.h"
#include "scheduler/policy_rollout.h"
#include "scheduler/policy_spread.h"
#include "scheduler/policy_topology.h"

namespace aliquot::scheduler {
namespace {

using Input = const PolicyInput&;

constexpr std::array kPolicies{
    PolicyRow{"random", "any node that fits", [](Input in) { return make_random(in.seed); }},
    PolicyRow{"dotprod", "least product of free and asked",
              [](Input) { return make_dot_product(); }},
    PolicyRow{"clustering", "like requests together", [](Input) { return make_clustering(); }},
    PolicyRow{"packing", "GPUs in use first, idle nodes last",
              [](Input) { return make_packing(); }},
    PolicyRow{"bestfit", "least CPU and GPU left over", [](Input) { return make_best_fit(); }},
    PolicyRow{"fgd", "least growth of fragmentation",
              [](Input in) { return make_fgd(in.workload); }},
    PolicyRow{"rollout", "least idle GPU after what is to come (ours)",
              [](Input in) { return make_rollout(in.workload, in.capacity, in.rollout); }},
    PolicyRow{"binpack", "fullest node first", [](Input) { return make_binpack(); }},
    PolicyRow{"topology", "GPUs that talk fastest to each other",
              [](Input in) { return make_topology(in.topologies); }},
    PolicyRow{"quiet", "GPUs that measured least busy", [](Input) { return make_quiet(); }},
    PolicyRow{"spread", "emptiest node first", [](Input) { return make_spread(); }},
};

}  // namespace

std::span<const PolicyRow> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const PolicyInput& input) {
  std::string names;
  for (const PolicyRow& row : kPolicies) {
    if (row.name == name) return row.make(input);
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error{Errc::kNotFound, "policy '" + std::string(name) + "': there are " + names};
}

}  // namespace aliquot::scheduler
