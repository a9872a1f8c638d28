#include "node/share_of_container.h"

#include "node/slots.h"

namespace aliquot::node {
namespace {

using model::MemoryQuantity;

MemoryQuantity bytes(std::uint64_t count) { return {MemoryQuantity::Kind::kBytes, count}; }

Result<ContainerShare> assigned_share(const kube::Pod& pod, const kube::Container& container,
                                      const std::string& text, std::size_t slots) {
  const auto assignment = kube::parse_assignment(text);
  if (!assignment) return assignment.error();
  const kube::ContainerAssignment* own = assignment->of(container.name);
  if (own == nullptr || own->gpus.size() != slots)
    return Error{Errc::kInvalid, "assignment of pod " + pod.full_name() + ": container " +
                                     container.name + " has " + std::to_string(slots) +
                                     " slots and " +
                                     std::to_string(own == nullptr ? 0 : own->gpus.size()) +
                                     " GPUs assigned; was the pod changed after it was bound?"};
  ContainerShare share;
  share.assigned = true;
  for (const kube::AssignedGpu& gpu : own->gpus)
    share.request.shares.push_back({gpu.uuid, bytes(gpu.memory_bytes), gpu.cores});
  return share;
}

// Without memory it has all of it, without cores no guarantee; with neither the GPU is its own.
Result<ContainerShare> asked_share(const kube::Pod& pod, const kube::Container& container,
                                   const std::vector<std::string>& ids, const ShareRules& rules) {
  const auto asked = kube::ask_of(pod, container, rules.bare_memory);
  if (!asked) return asked.error();
  const kube::ShareAsk& ask = *asked;
  broker::ShareRequest one;
  if (ask.memory) one.memory = *ask.memory;
  one.cores = ask.whole_gpu() ? model::kWholeGpu / rules.parts : ask.cores.value_or(0);
  // A replica is an equal part, so that all of them fit.
  if (ask.whole_gpu() && rules.parts > 1)
    one.memory = {MemoryQuantity::Kind::kPercent, model::kWholeGpu / rules.parts};
  const std::vector<std::string> gpus = gpus_of(ids);
  ContainerShare share;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    one.gpu = gpus.size() == ids.size() ? gpus[i] : std::string();
    share.request.shares.push_back(one);
  }
  return share;
}

}  // namespace

Result<ContainerShare> share_of(const kube::Pod& pod, const kube::Container& container,
                                const std::vector<std::string>& ids, const ShareRules& rules) {
  const std::string* assignment = pod.annotation(kube::kAssignmentAnnotation);
  auto share = assignment != nullptr ? assigned_share(pod, container, *assignment, ids.size())
                                     : asked_share(pod, container, ids, rules);
  if (!share) return share;
  const auto changed = kube::share_change(pod, container, rules.bare_memory);
  if (!changed) return changed.error();
  const std::optional<kube::ShareAsk>& change = *changed;
  if (!change) return share;
  for (broker::ShareRequest& one : share->request.shares) {
    if (change->memory) one.memory = *change->memory;
    if (change->cores) one.cores = *change->cores;
  }
  if (change->weight) share->request.weight = *change->weight;
  if (change->share_class == kube::Class::kOnline)
    share->request.share_class = wire::ShareClass::kOnline;
  return share;
}

}  // namespace aliquot::node
