// A list that stays current: lists a collection in pages, then watches it from there on, for ever.
//
// A watch that ends is taken up where it ended; one whose place is gone (410, or an ERROR event) is
// listed anew; one that is silent longer than its bookmarks come is ended by us. Failures wait
// longer each time, with jitter (the client's own retries apart).
//
// Leaves to others: what the objects are. run() is one thread; the sink is called from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "common/clock.h"
#include "format/json.h"
#include "kube/api_client.h"
#include "log/log.h"

namespace aliquot::kube {

class ListSink {
 public:
  virtual ~ListSink() = default;
  // The whole collection as it is; what is not in it is gone.
  virtual void replace(std::vector<format::Json> objects) = 0;
  virtual void changed(format::Json object) = 0;
  virtual void deleted(format::Json object) = 0;
};

class ListWatch {
 public:
  struct Options {
    std::string field_selector;  // "spec.nodeName=node-a"
    int page = 500;
    // The server ends a watch after that; bookmarks come about every minute.
    Nanoseconds watch_for = 300 * kSecond;
    Nanoseconds idle = 150 * kSecond;
    Nanoseconds first_wait = 200 * kMillisecond;
    Nanoseconds longest_wait = 30 * kSecond;
  };
  // `path` is the collection's ("/api/v1/pods"). Client, sink and clock outlive this.
  ListWatch(ApiClient& client, std::string path, ListSink& sink, const Clock& clock, log::Log log,
            Options options);

  // Returns when it is asked to stop.
  void run(const std::stop_token& stop);

  // From any thread: whether a whole list has been seen, and when the server last said anything.
  bool synced() const { return synced_; }
  Nanoseconds last_heard() const { return last_heard_; }

 private:
  // What a watch that ended leaves to be done.
  enum class Next : std::uint8_t { kWatch, kList };

  Status list(const std::stop_token& stop);
  Result<Next> watch(const std::stop_token& stop);
  Result<Next> event(std::string_view line);
  std::string query(bool watching, const std::string& more) const;

  ApiClient& client_;
  const std::string path_;
  ListSink& sink_;
  const Clock& clock_;
  const log::Log log_;
  const Options options_;
  std::string version_;  // resourceVersion that the next watch starts from
  std::atomic<bool> synced_ = false;
  std::atomic<Nanoseconds> last_heard_ = 0;
};

}  // namespace aliquot::kube
