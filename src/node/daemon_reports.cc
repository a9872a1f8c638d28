// The daemon's tongue: what is told of GPUs, processes and tenants, to the API server, `aliquot ps`
// and the log.
#include <signal.h>

#include <algorithm>

#include "common/files.h"
#include "common/pidfd.h"
#include "node/daemon.h"
#include "node/on_loop.h"
#include "node/slots.h"

namespace aliquot::node {
namespace {

std::string proc_text(std::int32_t pid, const char* name) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/" + name, 64 << 10);
  return text ? *text : std::string();
}

std::string use_text(const UnleasedProcess& process) {
  return "uses GPU " + process.uuid + " without a lease: no limit holds it";
}

// False: it has ended, or is another one by now.
bool end_process(const UnleasedProcess& process) {
  const UniqueFd fd = open_pidfd(process.pid);
  return fd && pod_uid_of(proc_text(process.pid, "cgroup")) == process.pod_uid &&
         signal_process(fd, SIGKILL);
}

}  // namespace

void Daemon::report(const kube::EventTarget& target, const char* reason, const std::string& text) {
  if (!notices_) return;
  kube::Event event;
  event.target = target;
  event.reason = reason;
  event.message = text;
  notices_->post(std::move(event));
}

void Daemon::report_health(const HealthChange& change) {
  if (notices_) notices_->health(change);
}

// On the loop: `aliquot ps` asks for them.
std::vector<broker::NoteRow> Daemon::notes() const {
  const auto known = machine();
  std::vector<broker::NoteRow> rows;
  for (const NodeHealth::State& one : health_.states()) {
    if (one.state == inventory::HealthState::kHealthy) continue;
    std::string why;
    for (const inventory::HealthFault& fault : one.faults)
      why += (why.empty() ? ": " : "; ") + fault.evidence;
    const std::vector<KnownGpu>& gpus = known->view.gpus;
    const auto gpu = std::ranges::find(gpus, one.uuid, &KnownGpu::uuid);
    rows.push_back({"gpu_health", "GPU " + std::to_string(gpu - gpus.begin()) + " " + one.uuid,
                    "is " + std::string(name_of(one.state)) + why});
  }
  for (const UnleasedProcess& process : unleased())
    rows.push_back(
        {"unleased_process", "process " + std::to_string(process.pid), use_text(process)});
  const std::lock_guard lock(mutex_);
  if (!unlike_kubelet_.empty())
    rows.push_back({"allocatable", "kubelet", "would give out " + unlike_kubelet_});
  for (const Misconduct& one : misconduct_)
    rows.push_back({"tenant", "lease " + one.lease, one.text});
  return rows;
}

std::vector<UnleasedProcess> Daemon::unleased() const {
  const std::lock_guard lock(mutex_);
  return unleased_;
}

void Daemon::look_at_tenants() {
  const auto leases = on_loop<std::vector<broker::LeaseRow>>(
      broker_->loop(), [this] { return Result(broker_->book().rows_after("", 1000)); });
  if (!leases) return;
  look_for_unleased(*leases);
  auto now = misconduct_in(*leases);
  for (const Misconduct& one : news_in(now, misconduct_)) report_misconduct(one);
  const std::lock_guard lock(mutex_);
  misconduct_ = std::move(now);
}

// Empty: alike, or there is nothing to compare: kubelet does not hold our stream, which is told
// otherwise.
std::string Daemon::unlike_offered(const KubeletWatch* watch, const std::string& resource,
                                   unsigned slots_per_gpu) const {
  if (watch == nullptr || !watch->is_ready()) return {};
  const auto allocatable = resources_->allocatable(resource);
  if (!allocatable) return {};
  std::vector<std::string> healthy;
  for (const OfferedGpu& gpu : board_.content().gpus)
    if (gpu.healthy) healthy.push_back(gpu.uuid);
  const std::string unlike = unlike_slots(*allocatable, healthy, slots_per_gpu);
  return unlike.empty() ? unlike : resource + ": " + unlike;
}

// Said once two looks in a row have found it: kubelet hears of a change a moment after us.
void Daemon::compare_allocatable() {
  const Config& config = options_.config;
  std::string now = unlike_offered(watch_.get(), config.resource, config.slots_per_gpu);
  if (now.empty())
    now = unlike_offered(nvidia_watch_.get(), kNvidiaResource, config.nvidia_replicas);
  const std::string confirmed = now == unlike_candidate_ ? now : std::string();
  unlike_candidate_ = std::move(now);
  {
    const std::lock_guard lock(mutex_);
    if (unlike_kubelet_ == confirmed) return;
    unlike_kubelet_ = confirmed;
  }
  if (confirmed.empty()) return;
  const std::string text = "kubelet would give out " + confirmed;
  options_.log.warning(text);
  report({"Node", {}, options_.config.node_name, options_.config.node_name},
         "AllocatableUnlikeInventory", text);
}

void Daemon::report_misconduct(const Misconduct& one) {
  options_.log.warning("lease " + one.lease + " " + one.text);
  if (!binding_) return;
  for (const BoundContainer& bound : binding_->bound())
    if (bound.lease == one.lease)
      report({"Pod", bound.pod_namespace, bound.pod, bound.uid}, "ShareMisused",
             "container " + bound.container + " " + one.text);
}

// Said once of each that two looks in a row have found: one may be just about to attach, or gone.
void Daemon::look_for_unleased(const std::vector<broker::LeaseRow>& leases) {
  auto found = unleased_processes(probes_->latest(), leases,
                                  [](std::int32_t pid) { return proc_text(pid, "cgroup"); });
  std::vector<UnleasedProcess> confirmed;
  for (const UnleasedProcess& process : found)
    if (std::ranges::find(unleased_candidates_, process.pid, &UnleasedProcess::pid) !=
        unleased_candidates_.end())
      confirmed.push_back(process);
  const auto before = unleased();
  for (const UnleasedProcess& process : confirmed)
    if (std::ranges::find(before, process.pid, &UnleasedProcess::pid) == before.end())
      report_unleased(process);
  unleased_candidates_ = std::move(found);
  const std::lock_guard lock(mutex_);
  unleased_ = std::move(confirmed);
}

void Daemon::report_unleased(const UnleasedProcess& process) {
  kube::PodRef pod;
  if (pods_ && !process.pod_uid.empty())
    for (const kube::PodRef& one : pods_->pods())
      if (one->cgroup_uid() == process.pod_uid) pod = one;
  std::string name = proc_text(process.pid, "comm");
  name = name.substr(0, name.find('\n'));
  std::string text =
      "process " + std::to_string(process.pid) + " (" + name + ") " + use_text(process);
  // Others' processes (a display, another plugin's container) are not ours to end.
  const auto bound = binding_ ? binding_->bound() : std::vector<BoundContainer>();
  const bool ours = pod && std::ranges::find(bound, pod->uid, &BoundContainer::uid) != bound.end();
  if (ours && options_.config.on_unleased == OnUnleased::kEnd && end_process(process))
    text += "; it was ended";
  options_.log.warning(text + (pod ? " (pod " + pod->full_name() + ")" : ""));
  report(pod ? kube::event_target(*pod)
             : kube::EventTarget{"Node", {}, options_.config.node_name, options_.config.node_name},
         "GpuUseWithoutShare", text);
}

}  // namespace aliquot::node
