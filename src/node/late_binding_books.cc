// LateBinding's slow half: what an earlier daemon left, what kubelet knows no more, live changes.
#include <algorithm>
#include <set>

#include "common/files.h"
#include "node/late_binding.h"
#include "node/on_loop.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestRecord = 64 << 10;
constexpr Nanoseconds kOrphanAfter = 15 * kSecond;

bool is_spec_of_ours(const std::string& name) {
  return name.starts_with("aliquot.dev-lease-") && name.ends_with(".json");
}

}  // namespace

Status LateBinding::adopt() {
  const fs::path pods = options_.state_directory / "pods";
  if (const Status made = make_directories(pods, 0755); !made) return made;
  if (options_.way == InjectionWay::kCdi)
    if (const Status made = make_directories(options_.cdi_directory, 0755); !made) return made;
  std::set<std::string> leases;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(pods, code)) {
    if (entry.path().extension() != ".json") continue;
    const auto text = read_file(entry.path(), kLargestRecord);
    const auto record = text ? parse_bound_container(*text, entry.path().string()) : text.error();
    const bool good = record && around_.book.row(record->lease);
    if (good) {
      leases.insert(record->lease);
      remember(*record);
      // The configuration may be another one than when it was made.
      static_cast<void>(around_.book.set_observed(
          record->lease, observe_.covers(record->pod_namespace, record->pod)));
      continue;
    }
    options_.log.warning("container " + (record ? record->full_name() : entry.path().string()) +
                         ": " + (record ? "its lease is gone" : record.error().message));
    fs::remove(entry.path(), code);
  }
  // A daemon killed between a lease and its record.
  for (const std::string& name : around_.book.held_names())
    if (!leases.contains(name)) {
      ++leaked_;
      options_.log.warning("lease " + name + ": no container has it; released");
      static_cast<void>(around_.book.release(name));
    }
  for (const auto& entry : fs::directory_iterator(options_.cdi_directory, code)) {
    const std::string name = entry.path().filename().string();
    if (is_spec_of_ours(name) && std::ranges::none_of(bound_, [&](const auto& one) {
          return cdi_path(options_.cdi_directory, one.first) == entry.path();
        }))
      fs::remove(entry.path(), code);
  }
  return {};
}

Status LateBinding::reconcile() {
  const std::lock_guard alone(reconciling_);
  const auto list = list_.fresh();
  if (!list) return list.error();
  for (const BoundContainer& bound : this->bound()) {
    // Younger than the list: it may not be in it yet.
    if (bound.bound_at >= list->begun_at) continue;
    const PodName name{bound.pod_namespace, bound.pod};
    const bool listed = std::ranges::find(list->book->pods, name) != list->book->pods.end();
    const kube::PodRef pod = around_.pods.find(name.pod_namespace, name.name);
    // Kubelet alone is no witness: one that has just started lists no pod yet, and those
    // before 1.34 list pods that have ended. A pod that lives keeps its lease, one that nobody
    // knows loses it.
    const bool over = pod ? (pod->uid == bound.uid ? pod->finished() : around_.pods.synced())
                          : (!listed && around_.pods.synced());
    if (!over) continue;
    options_.log.info("container " + bound.full_name() + ": over; lease " + bound.lease +
                      " released");
    release(bound);
  }
  const auto held = on_loop<std::vector<std::string>>(
      around_.loop, [this] { return Result<std::vector<std::string>>(around_.book.held_names()); });
  if (!held) return held.error();
  // Looked at after the leases: one bound meanwhile has its record, or is younger than this.
  const std::vector<BoundContainer> all = this->bound();
  // Names come again: the next lease of that name is as young as any.
  std::erase_if(suspects_, [&](const auto& suspect) {
    return std::ranges::find(*held, suspect.first) == held->end();
  });
  for (const std::string& name : *held) {
    if (std::ranges::find(all, name, &BoundContainer::lease) != all.end()) {
      suspects_.erase(name);
      continue;
    }
    // A lease exists a moment before its record does.
    const Nanoseconds now = around_.clock.now();
    if (now - suspects_.try_emplace(name, now).first->second < kOrphanAfter) continue;
    suspects_.erase(name);
    ++leaked_;
    options_.log.warning("lease " + name + ": no container has it; released");
    static_cast<void>(on_loop<bool>(around_.loop, [this, name]() -> Result<bool> {
      static_cast<void>(around_.book.release(name));
      return true;
    }));
  }
  remove_old_libraries();
  return {};
}

// Whose they are stands in the containers' specifications. Not where there are none: what Allocate
// once answered is known to kubelet alone.
void LateBinding::remove_old_libraries() const {
  if (options_.way != InjectionWay::kCdi) return;
  std::error_code code;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(options_.files.libraries.parent_path(), code))
    if (entry.path() != options_.files.libraries) old.push_back(entry.path());
  if (old.empty()) return;
  std::string all;
  for (const auto& entry : fs::directory_iterator(options_.cdi_directory, code)) {
    if (!is_spec_of_ours(entry.path().filename().string())) continue;
    const auto text = read_file(entry.path(), kLargestRecord);
    if (!text) return;  // what it names is not known
    all += *text;
  }
  if (code) return;
  for (const fs::path& directory : old)
    if (all.find(directory.string()) == std::string::npos) {
      options_.log.info("libraries " + directory.string() + ": no container has them; removed");
      fs::remove_all(directory, code);
    }
}

void LateBinding::apply_changes(const kube::Pods& pods) {
  for (const BoundContainer& bound : this->bound())
    for (const kube::PodRef& pod : pods)
      if (pod->uid == bound.uid && !pod->finished()) apply_change(bound, *pod);
}

// What the pod says now against what is in force; a text that was tried is not tried again.
void LateBinding::apply_change(const BoundContainer& bound, const kube::Pod& pod) {
  const std::string* text = pod.annotation(kube::kShareAnnotation);
  const std::string now = text != nullptr ? *text : std::string();
  if (now == bound.share) return;
  BoundContainer changed = bound;
  changed.share = now;
  remember(changed);
  const kube::Container* container = pod.container(bound.container);
  if (container == nullptr) return;
  const auto share = share_of(pod, *container, bound.ids, rules_for(bound.ids));
  const auto done = share ? on_loop<bool>(around_.loop,
                                          [this, lease = bound.lease, gpus = bound.gpus,
                                           request = share->request]() -> Result<bool> {
                                            const Status set = set_share(lease, gpus, request);
                                            if (!set) return set.error();
                                            return true;
                                          })
                          : Result<bool>(share.error());
  if (done) {
    options_.log.info("container " + bound.full_name() + ": share is now " +
                      (now.empty() ? "as it was first" : now));
    static_cast<void>(
        write_file_atomically(record_path(changed.key), bound_container_text(changed)));
    return;
  }
  ++refused_;
  options_.log.warning("container " + bound.full_name() + ": share " + now +
                       " refused: " + done.error().message);
  if (options_.on_refused_change) options_.on_refused_change(pod, done.error().message);
}

// On the loop. What does not fit changes nothing.
Status LateBinding::set_share(const std::string& lease, const std::vector<std::string>& gpus,
                              const broker::LeaseRequest& request) {
  std::vector<broker::ShareChange> changes;
  for (std::size_t i = 0; i < gpus.size() && i < request.shares.size(); ++i) {
    // By UUID where the share names its GPU: the lease is in PCI order.
    const auto named = std::ranges::find(request.shares, gpus[i], &broker::ShareRequest::gpu);
    const broker::ShareRequest& share = named != request.shares.end() ? *named : request.shares[i];
    broker::ShareChange& change = changes.emplace_back();
    change.memory = share.memory;
    change.compute.lease = lease;
    change.compute.gpu = gpus[i];
    change.compute.cores = share.cores;
    change.compute.weight = request.weight;
    change.compute.share_class = request.share_class;
  }
  return around_.book.set_shares(changes);
}

}  // namespace aliquot::node
