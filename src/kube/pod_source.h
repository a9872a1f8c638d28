// PodSource: the pods of this node as the node agent sees them, from the API server (api_pods.h)
// or, on a node without one, from kubelet (kubelet_pods.h). FixedPods is the in-memory twin for
// tests.
//
// Leaves to others: what is done with a pod. Every method may be called from any thread and returns
// values that nobody changes any more.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "kube/pod.h"

namespace aliquot::kube {

using PodRef = std::shared_ptr<const Pod>;  // shared: a snapshot outlives the next change
using Pods = std::vector<PodRef>;

class PodSource {
 public:
  virtual ~PodSource() = default;

  // All pods of the node as last seen, by namespace and name. Never blocks on the network.
  virtual Pods pods() const = 0;

  // The pod of that name as last seen; nullptr where there is none.
  virtual PodRef find(std::string_view name_space, std::string_view name) const = 0;

  // The pod as it is now, asked of the server; bounded by a few seconds. For the moment in which
  // what was last seen may be too old: kubelet can know a pod before we do. kNotFound: it does not
  // exist.
  virtual Result<PodRef> fetch(std::string_view name_space, std::string_view name) = 0;

  // False until the first full list: "no pod of that name" means nothing before.
  virtual bool synced() const = 0;

  // `changed` is called after every change with the pods as they are now, never twice at once, from
  // a thread of the source or of whoever fetches; it must not block nor fetch. To be set once,
  // before the source is started.
  using Changed = std::function<void(const Pods&)>;
  virtual void on_change(Changed changed) = 0;
};

// Holds what it is given.
class FixedPods final : public PodSource {
 public:
  void set(std::vector<Pod> pods);
  Pods pods() const override;
  PodRef find(std::string_view name_space, std::string_view name) const override;
  Result<PodRef> fetch(std::string_view name_space, std::string_view name) override;
  bool synced() const override { return true; }
  void on_change(Changed changed) override { changed_ = std::move(changed); }

 private:
  mutable std::mutex mutex_;
  Pods pods_;
  Changed changed_;
};

}  // namespace aliquot::kube
