// The pods of one node from the API server: a list that a watch keeps current.
//
// start() begins a thread of its own, which ends with the object. Threads: pod_source.h.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "kube/list_watch.h"
#include "kube/pod_source.h"

namespace aliquot::kube {

class ApiPods final : public PodSource, private ListSink {
 public:
  // The client and the clock outlive this.
  ApiPods(ApiClient& client, const std::string& node, const Clock& clock, const log::Log& log);
  ApiPods(ApiClient& client, const Clock& clock, const log::Log& log, ListWatch::Options options);

  void start();

  Pods pods() const override;
  PodRef find(std::string_view name_space, std::string_view name) const override;
  Result<PodRef> fetch(std::string_view name_space, std::string_view name) override;
  bool synced() const override { return list_watch_.synced(); }
  void on_change(Changed changed) override { changed_ = std::move(changed); }
  // How old the server's last word is.
  Nanoseconds last_heard() const { return list_watch_.last_heard(); }

 private:
  void replace(std::vector<format::Json> objects) override;
  void changed(format::Json object) override;
  void deleted(format::Json object) override;
  PodRef read(const format::Json& object) const;

  ApiClient& client_;
  const log::Log log_;
  ListWatch list_watch_;
  Changed changed_;
  mutable std::mutex mutex_;  // guards pods_
  std::map<PodName, PodRef> pods_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace aliquot::kube
