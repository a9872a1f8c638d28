#include "node/late_binding.h"

#include <algorithm>
#include <thread>

#include "common/files.h"
#include "node/on_loop.h"
#include "node/slots.h"
#include "wire/tenant_paths.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

// kubelet gives PreStartContainer 30 s; the pod's ids are known 400 ms before it as a rule.
constexpr Nanoseconds kOwnerPatience = 8 * kSecond;
// A daemon that has just started waits for what NVML says; one that hangs is not waited for longer.
constexpr Nanoseconds kGpuPatience = 5 * kSecond;
constexpr std::chrono::milliseconds kOwnerPause(100);
constexpr std::size_t kLargestCheckpoint = 32u << 20;
// Processes of one container on the GPU at once. A ledger has a cell for each, which the daemon
// looks through once a second: with the most there can be (1024) 100 containers would keep 32 MiB
// of it resident.
constexpr std::uint32_t kSlotsOfContainer = 256;

}  // namespace

LateBinding::LateBinding(Options options, Surroundings around)
    : options_(std::move(options)),
      around_(around),
      list_(around.resources, options_.resources, around.clock),
      observe_(options_.observe) {}

fs::path LateBinding::record_path(const std::string& key) const {
  return options_.state_directory / "pods" / (key + ".json");
}

fs::path LateBinding::link_path(const std::string& key) const {
  return options_.state_directory / "pods" / key;
}

std::vector<std::string> LateBinding::preferred(const std::vector<std::string>& available,
                                                const std::vector<std::string>& must,
                                                std::size_t count) {
  return preferred_slots(around_.board.content(), {available, must, count}, options_.strategy);
}

Result<ContainerGift> LateBinding::allocate(const std::vector<std::string>& ids) {
  if (ids.empty() || gpus_of(ids).empty())
    return Error{Errc::kInvalid, "allocate: no device of this plugin was named"};
  const std::string key = set_key(ids);
  if (options_.way == InjectionWay::kMounts) {
    // The directory is a link that before_start() points at the lease.
    std::vector<InjectedGpu> gpus;
    for (const std::string& uuid : gpus_of(ids))
      if (const auto minor = options_.minors.find(uuid); minor != options_.minors.end())
        gpus.push_back({uuid, minor->second});
    return injection_of(options_.files, link_path(key), gpus);
  }
  ContainerGift gift;
  gift.cdi_devices.push_back(cdi_name(key));
  return gift;
}

Status LateBinding::before_start(const std::vector<std::string>& ids) {
  const auto owner = owner_of(ids);
  BoundContainer bound;
  Status done;
  if (owner) {
    const kube::Pod& pod = *owner->pod;
    bound.key = set_key(ids);
    bound.ids = ids;
    bound.pod_namespace = pod.name_space;
    bound.pod = pod.name;
    bound.uid = pod.uid;
    bound.container = owner->container;
    if (const std::string* share = pod.annotation(kube::kShareAnnotation)) bound.share = *share;
    bound.bound_at = around_.clock.now();
    const auto asked = wanted(*owner, ids);
    const auto grant = asked ? obtain(bound, *asked) : asked.error();
    done = grant ? publish(pod, bound, *grant) : Status(grant.error());
  } else {
    done = owner.error();
  }
  if (!done) {
    ++refused_;
    options_.log.warning((owner ? "container " + bound.full_name() + ": " : "") +
                         done.error().message);
    return done;
  }
  ++bound_count_;
  count_mismatch(ids, bound.gpus);
  options_.log.info("container " + bound.full_name() + ": lease " + bound.lease);
  return {};
}

void LateBinding::count_mismatch(const std::vector<std::string>& ids,
                                 const std::vector<std::string>& gpus) {
  const std::vector<std::string> slots = gpus_of(ids);
  for (const std::string& uuid : gpus)
    if (std::ranges::find(slots, uuid) == slots.end()) {
      ++mismatches_;
      return;
    }
}

Result<LateBinding::Owner> LateBinding::owner_of(const std::vector<std::string>& ids) {
  const Nanoseconds until = around_.clock.now() + kOwnerPatience;
  for (;;) {
    auto owner = try_owner(ids);
    const bool worth_a_retry = !owner && (owner.error().code == Errc::kNotFound ||
                                          owner.error().code == Errc::kUnavailable);
    if (!worth_a_retry || around_.clock.now() > until) return owner;
    std::this_thread::sleep_for(kOwnerPause);
  }
}

Result<LateBinding::Owner> LateBinding::try_owner(const std::vector<std::string>& ids) {
  const auto list = list_.fresh();
  if (!list) return list.error();
  std::vector<HeldDevices> held = list->book->held;
  // The checkpoint is kubelet's own affair: where it cannot be read, podresources must do.
  if (const auto text = read_file(options_.checkpoint, kLargestCheckpoint); text)
    if (const auto entries = parse_checkpoint(*text, options_.resources); entries)
      held.insert(held.end(), entries->begin(), entries->end());
  kube::PodRef pod;
  if (const auto name = pod_of_ids(*list->book, ids); name) {
    auto found = pod_called(*name);
    if (!found) return found.error();
    pod = *found;
  } else {
    const std::string uid = uid_of_ids(held, ids);
    const kube::Pods pods = around_.pods.pods();
    const auto at = std::ranges::find_if(pods, [&](const kube::PodRef& one) {
      return !uid.empty() && (one->uid == uid || one->cgroup_uid() == uid);
    });
    if (at == pods.end()) return name.error();
    pod = *at;
  }
  auto turn = turn_of(*pod, held, ids);
  if (!turn) return turn.error();
  if (turn->stale) {
    // Its status is older than what we are asked: ask anew; kubelet writes it within a second.
    auto found = around_.pods.fetch(pod->name_space, pod->name);
    if (!found) return found.error();
    pod = *found;
    turn = turn_of(*pod, held, ids);
    if (!turn) return turn.error();
    if (turn->stale)
      return Error{Errc::kUnavailable, "find the container of pod " + pod->full_name() +
                                           ": its status says that " + turn->container +
                                           " runs already"};
  }
  return Owner{pod, turn->container};
}

Result<kube::PodRef> LateBinding::pod_called(const PodName& name) {
  if (kube::PodRef pod = around_.pods.find(name.pod_namespace, name.name); pod && !pod->finished())
    return pod;
  return around_.pods.fetch(name.pod_namespace, name.name);
}

Result<LateBinding::Wanted> LateBinding::wanted(const Owner& owner,
                                                const std::vector<std::string>& ids) const {
  const kube::Container* container = owner.pod->container(owner.container);
  if (container == nullptr)
    return Error{Errc::kNotFound, "share for " + owner.container + ": the pod has no such one"};
  auto share = share_of(*owner.pod, *container, ids, rules_for(ids));
  if (!share) return share.error();
  Wanted wanted{std::move(share->request), share->assigned};
  wanted.request.observe = observed().covers(owner.pod->name_space, owner.pod->name);
  wanted.request.slots = kSlotsOfContainer;
  wanted.request.driver = options_.files.driver.name;
  wanted.request.cgroup = "pod:" + owner.pod->cgroup_uid();
  wanted.request.real_libcuda = wire::kTenantLibcuda;
  wanted.request.real_libnvidia_ml = wire::kTenantLibnvidiaMl;
  return wanted;
}

Result<broker::LeaseGrant> LateBinding::obtain(BoundContainer& bound, const Wanted& wanted) {
  const auto before = known(bound.key);
  if (before && before->uid == bound.uid && before->container == bound.container) {
    // Started once more: the same lease, with what has been changed in it.
    const auto row = on_loop<broker::LeaseRow>(
        around_.loop, [this, name = before->lease] { return around_.book.row(name); });
    if (row && row->state == wire::LeaseState::kLive) {
      bound.lease = before->lease;
      bound.share = before->share;
      broker::LeaseGrant grant;
      grant.name = row->name;
      grant.directory = row->directory;
      for (const broker::UsageRow& gpu : row->gpus)
        grant.gpus.push_back({gpu.index, gpu.uuid, gpu.limit_bytes});
      return grant;
    }
  }
  if (before) release(*before);
  bound.lease = lease_name_for(bound);
  broker::LeaseRequest request = wanted.request;
  request.name = bound.lease;
  const Nanoseconds until = around_.clock.now() + kGpuPatience;
  auto grant = hold(request, wanted.assigned);
  while (!grant && grant.error().code == Errc::kUnavailable && around_.clock.now() < until) {
    std::this_thread::sleep_for(kOwnerPause);
    grant = hold(request, wanted.assigned);
  }
  if (!grant && grant.error().code == Errc::kExhausted) {
    // What ended containers still hold is free.
    static_cast<void>(reconcile());
    grant = hold(request, wanted.assigned);
  }
  return grant;
}

Result<broker::LeaseGrant> LateBinding::hold(broker::LeaseRequest request, bool assigned) {
  return on_loop<broker::LeaseGrant>(
      around_.loop, [this, request = std::move(request), assigned]() mutable {
        // An earlier container of that name whose processes have not ended yet.
        const std::string name = request.name;
        for (unsigned n = 2; around_.book.row(request.name) && n < 100; ++n)
          request.name = name + "-" + std::to_string(n);
        auto grant = around_.book.hold(request);
        const bool elsewhere = !grant && (grant.error().code == Errc::kExhausted ||
                                          grant.error().code == Errc::kUnavailable);
        if (!elsewhere || assigned) return grant;
        // The slots were only a wish: any GPU with room will do.
        for (broker::ShareRequest& share : request.shares) share.gpu.clear();
        return around_.book.hold(request);
      });
}

Status LateBinding::publish(const kube::Pod& pod, BoundContainer& bound,
                            const broker::LeaseGrant& grant) {
  bound.lease = grant.name;
  std::vector<InjectedGpu> gpus;
  for (const broker::GrantedGpu& gpu : grant.gpus) {
    bound.gpus.push_back(gpu.uuid);
    const auto minor = options_.minors.find(gpu.uuid);
    gpus.push_back({gpu.uuid, minor == options_.minors.end() ? gpu.index : minor->second});
  }
  remember(bound);
  ContainerGift gift = injection_of(options_.files, grant.directory, gpus);
  Status done;
  if (options_.add_wishes) done = options_.add_wishes(pod, bound, gift);
  if (done) done = write_file_atomically(record_path(bound.key), bound_container_text(bound));
  if (done && options_.way == InjectionWay::kCdi)
    done = write_file_atomically(cdi_path(options_.cdi_directory, bound.key),
                                 cdi_text(bound.key, gift));
  if (done && options_.way == InjectionWay::kMounts) {
    std::error_code code;
    const fs::path beside = link_path(bound.key).string() + ".new";
    fs::remove(beside, code);
    fs::create_directory_symlink(grant.directory, beside, code);
    if (!code) fs::rename(beside, link_path(bound.key), code);
    if (code)
      done =
          Error{Errc::kInternal, "make " + link_path(bound.key).string() + ": " + code.message()};
  }
  if (!done) release(bound);
  return done;
}

std::optional<BoundContainer> LateBinding::known(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = bound_.find(key);
  return at == bound_.end() ? std::nullopt : std::optional(at->second);
}

void LateBinding::remember(const BoundContainer& bound) {
  const std::lock_guard lock(mutex_);
  bound_[bound.key] = bound;
}

void LateBinding::release(const BoundContainer& bound) {
  static_cast<void>(on_loop<bool>(around_.loop, [this, name = bound.lease]() -> Result<bool> {
    static_cast<void>(around_.book.release(name));  // it may be gone already
    return true;
  }));
  {
    const std::lock_guard lock(mutex_);
    const auto at = bound_.find(bound.key);
    if (at == bound_.end() || at->second.lease != bound.lease) return;  // another has the ids
    bound_.erase(at);
  }
  std::error_code ignored;
  fs::remove(cdi_path(options_.cdi_directory, bound.key), ignored);
  fs::remove(link_path(bound.key), ignored);
  fs::remove(record_path(bound.key), ignored);
  fs::remove(link_path(bound.key).string() + ".nccl.xml", ignored);
}

ShareRules LateBinding::rules_for(const std::vector<std::string>& ids) const {
  return {options_.bare_memory, are_nvidia(ids) ? options_.nvidia_replicas : 1};
}

ObserveRule LateBinding::observed() const {
  const std::lock_guard lock(mutex_);
  return observe_;
}

void LateBinding::observe(const ObserveRule& rule) {
  {
    const std::lock_guard lock(mutex_);
    observe_ = rule;
  }
  for (const BoundContainer& one : bound())
    around_.loop.post([this, lease = one.lease, on = rule.covers(one.pod_namespace, one.pod)] {
      static_cast<void>(around_.book.set_observed(lease, on));  // it may be gone already
    });
}

std::vector<BoundContainer> LateBinding::bound() const {
  const std::lock_guard lock(mutex_);
  std::vector<BoundContainer> all;
  for (const auto& [key, one] : bound_) all.push_back(one);
  return all;
}

BindingCounters LateBinding::counters() const {
  return {bound_count_, refused_, mismatches_, leaked_, list_.put_off()};
}

}  // namespace aliquot::node
