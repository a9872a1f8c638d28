// LateBinding: the plugin's decisions. Allocate gives a name that means nothing yet; the lease is
// made when the container is about to start, because only then can it be known whose ids they are.
//
//   before_start(ids) -> whose (podresources, checkpoint, pod status) -> what it may have
//   (assignment, annotations, limits) -> lease in the broker's book -> CDI specification
//
// It fails with the reason rather than starting a container without a lease. A lease lives as long
// as its container may be started again; whoever reconciles (reconcile()) releases the others.
// Where kubelet's slot lies on another GPU than the lease, the lease wins and is counted.
//
// Decisions come on the plugin's threads; the broker's book is asked on its loop, where no more
// than a few milliseconds are spent. Functions are for any thread but the loop's.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "broker/book.h"
#include "broker/loop.h"
#include "kube/pod_source.h"
#include "node/bound_container.h"
#include "node/container_of_ids.h"
#include "node/injection.h"
#include "node/observe_rule.h"
#include "node/preferred_slots.h"
#include "node/share_of_container.h"
#include "node/shared_list.h"

namespace aliquot::node {

enum class InjectionWay {
  kCdi,
  kMounts,  // for runtimes without CDI
};

struct BindingCounters {
  std::uint64_t bound = 0, refused = 0;
  std::uint64_t slot_mismatches = 0;  // kubelet's slot lay on another GPU than the lease
  std::uint64_t leaked_leases = 0;    // found by reconcile() and released
  std::uint64_t lists_put_off = 0;    // answers that kubelet refused: it is asked too often
};

class LateBinding final : public PluginDecisions {
 public:
  struct Options {
    std::filesystem::path state_directory;
    std::filesystem::path cdi_directory = "/var/run/cdi";
    std::filesystem::path checkpoint;                          // kubelet_internal_checkpoint
    std::vector<std::string> resources = {"aliquot.dev/gpu"};  // all that its slots are offered as
    unsigned nvidia_replicas = 1;  // of a GPU, in slots of nvidia.com/gpu
    kube::BareMemory bare_memory;
    ObserveRule observe;
    InjectionWay way = InjectionWay::kCdi;
    SlotStrategy strategy = SlotStrategy::kBinpack;
    NodeFiles files;
    std::map<std::string, unsigned> minors;  // by UUID
    // Adds what the pod asked for besides its share; null: nothing. On the caller's thread.
    std::function<Status(const kube::Pod&, const BoundContainer&, ContainerGift&)> add_wishes;
    // Told of a live change that does not fit, with the reason. On the caller's thread.
    std::function<void(const kube::Pod&, const std::string&)> on_refused_change;
    log::Log log;
  };
  struct Surroundings {  // all outlive the LateBinding
    broker::Book& book;
    broker::Loop& loop;
    PodResources& resources;
    kube::PodSource& pods;
    const DeviceBoard& board;
    const Clock& clock;
  };

  LateBinding(Options options, Surroundings around);

  // Takes up what an earlier daemon wrote. Before the loop runs.
  Status adopt();

  std::vector<std::string> preferred(const std::vector<std::string>& available,
                                     const std::vector<std::string>& must,
                                     std::size_t count) override;
  Result<ContainerGift> allocate(const std::vector<std::string>& ids) override;
  Status before_start(const std::vector<std::string>& ids) override;

  // Releases the leases of containers that kubelet knows no more, and removes the libraries that no
  // container has any more. Nothing when kubelet does not answer.
  Status reconcile();
  // Brings the live changes that pods ask for (aliquot.dev/share) into force. Any thread.
  void apply_changes(const kube::Pods& pods);

  // Whose limits are only watched, from now on: also of containers that run.
  void observe(const ObserveRule& rule);

  std::vector<BoundContainer> bound() const;
  BindingCounters counters() const;

 private:
  struct Owner {
    kube::PodRef pod;
    std::string container;
  };
  struct Wanted {
    broker::LeaseRequest request;
    bool assigned = false;  // the GPUs are decided; else those of the slots are a wish
  };

  Result<Owner> owner_of(const std::vector<std::string>& ids);
  Result<Owner> try_owner(const std::vector<std::string>& ids);
  Result<kube::PodRef> pod_called(const PodName& name);
  Result<Wanted> wanted(const Owner& owner, const std::vector<std::string>& ids) const;
  Result<broker::LeaseGrant> obtain(BoundContainer& bound, const Wanted& wanted);
  Result<broker::LeaseGrant> hold(broker::LeaseRequest request, bool assigned);
  Status publish(const kube::Pod& pod, BoundContainer& bound, const broker::LeaseGrant& grant);
  void release(const BoundContainer& bound);
  void remove_old_libraries() const;
  void apply_change(const BoundContainer& bound, const kube::Pod& pod);
  Status set_share(const std::string& lease, const std::vector<std::string>& gpus,
                   const broker::LeaseRequest& request);
  ShareRules rules_for(const std::vector<std::string>& ids) const;
  ObserveRule observed() const;
  std::optional<BoundContainer> known(const std::string& key) const;
  void remember(const BoundContainer& bound);
  void count_mismatch(const std::vector<std::string>& ids, const std::vector<std::string>& gpus);
  std::filesystem::path record_path(const std::string& key) const;
  std::filesystem::path link_path(const std::string& key) const;
  Options options_;
  Surroundings around_;
  SharedList list_;
  mutable std::mutex mutex_;
  std::map<std::string, BoundContainer> bound_;  // by key; guarded by mutex_
  ObserveRule observe_;                          // guarded by mutex_
  std::mutex reconciling_;
  // Leases without a record and when they were first seen so; guarded by reconciling_.
  std::map<std::string, Nanoseconds> suspects_;
  std::atomic<std::uint64_t> bound_count_ = 0, refused_ = 0, mismatches_ = 0, leaked_ = 0;
};

}  // namespace aliquot::node
