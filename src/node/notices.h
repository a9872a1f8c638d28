// Notices: what the API server is told of this node: Events, the node condition GpusHealthy, and,
// where it is wanted, a taint while a GPU is not usable.
//
// One thread of its own, because a server may be slow or away: what cannot be written now is tried
// again until it can. The condition is written anew every few minutes, so that it says how fresh it
// is and comes back when somebody took it away. Leaves to others: judging health (node_health.h).
// Functions are for any thread and do not wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "kube/api_client.h"
#include "kube/writes.h"
#include "log/log.h"
#include "node/node_health.h"

namespace aliquot::node {

inline constexpr const char* kHealthCondition = "GpusHealthy";
inline constexpr const char* kHealthTaint = "aliquot.dev/gpu-unhealthy";

class Notices {
 public:
  struct Options {
    std::string node;
    std::string taint_effect;                   // empty: no taint
    std::map<std::string, unsigned> gpu_index;  // by UUID, to be named by
    Nanoseconds retry_after = 5 * kSecond;
    Nanoseconds repeat_after = 300 * kSecond;
    log::Log log;
  };
  // Starts the thread. `client` outlives it and is asked by this thread alone while it lives.
  Notices(Options options, kube::ApiClient& client);
  // Ends within about the client's deadline; what was not written stays unwritten.
  ~Notices();
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  void health(const HealthChange& change);
  void post(kube::Event event);
  // Events that came when too many waited.
  std::uint64_t dropped() const;

 private:
  struct Unusable {
    inventory::HealthState state;
    std::string why;
  };

  void run();
  Status write_health(const std::map<std::string, Unusable>& unusable);
  kube::Condition condition(const std::map<std::string, Unusable>& unusable) const;
  std::string title(const std::string& uuid) const;

  const Options options_;
  kube::ApiClient& client_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable woken_;
  bool stopping_ = false, health_changed_ = true;
  std::map<std::string, Unusable> unusable_;  // by UUID
  std::deque<kube::Event> events_;
  std::uint64_t dropped_ = 0;
  std::thread thread_;
};

}  // namespace aliquot::node
