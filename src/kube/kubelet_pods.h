// The pods of a node without an API server: kubelet's own list (/pods), asked again and again.
// Kubelet offers no watch there.
//
// The client points at kubelet: http://127.0.0.1:10255 (read-only port), or https://127.0.0.1:10250
// with a token or certificate that may read nodes/proxy. Annotations of static pods come from their
// files, so that a change there means a new pod. Threads: pod_source.h.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "kube/api_client.h"
#include "kube/pod_source.h"
#include "log/log.h"

namespace aliquot::kube {

class KubeletPods final : public PodSource {
 public:
  KubeletPods(ApiClient& kubelet, const log::Log& log, Nanoseconds interval = kSecond);

  // Begins to ask in a thread of its own.
  void start();
  // Asks once, now.
  Status refresh(const std::stop_token& stop = {});

  Pods pods() const override;
  PodRef find(std::string_view name_space, std::string_view name) const override;
  Result<PodRef> fetch(std::string_view name_space, std::string_view name) override;
  bool synced() const override { return synced_; }
  void on_change(Changed changed) override { changed_ = std::move(changed); }

 private:
  void run(const std::stop_token& stop);
  void keep_missing(Pods& fresh);

  ApiClient& kubelet_;
  const log::Log log_;
  const Nanoseconds interval_;
  Changed changed_;
  std::atomic<bool> synced_ = false;
  std::mutex refresh_mutex_;            // one answer is taken in at a time; guards missing_
  std::map<std::string, int> missing_;  // by uid: answers without the pod
  mutable std::mutex mutex_;            // guards pods_
  Pods pods_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace aliquot::kube
