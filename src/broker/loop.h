// Loop: one epoll, handlers by descriptor, periodic work. Small on purpose.
//
// A handler may add and remove descriptors, its own included; events that were already fetched for
// a removed one are dropped. One thread; post() and stop() from any.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::broker {

class Loop {
 public:
  explicit Loop(const Clock& clock);

  using Handler = std::function<void()>;
  // Calls `ready` whenever fd is readable or has ended, until remove(fd). Borrowed: remove first,
  // close then.
  Status add(int fd, Handler ready);
  void remove(int fd);
  // Calls `work` about every `period`.
  void every(Nanoseconds period, Handler work);
  // Runs `work` on the loop's thread, soon. From any thread; what was posted to a loop that has
  // stopped runs at its next turn, or never.
  void post(Handler work);
  // Called once before the handlers of each turn.
  void before_each_turn(Handler work) { before_ = std::move(work); }

  // One wait of at most `timeout_ms` and what it brought.
  void turn(int timeout_ms);
  // Turns until stop().
  void run();
  void stop();
  Nanoseconds now() const { return clock_.now(); }

 private:
  struct Timer {
    Nanoseconds period;
    Nanoseconds next;
    Handler work;
  };
  int next_timer_ms() const;
  void run_posted();

  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd wake_;  // stop(): a signal handler may write to it
  UniqueFd posting_;
  std::mutex posted_mutex_;
  std::vector<Handler> posted_;  // guarded by posted_mutex_
  bool stopped_ = false;
  std::uint64_t next_token_ = 1;
  std::unordered_map<int, std::uint64_t> token_of_;
  std::unordered_map<std::uint64_t, std::pair<int, Handler>> handlers_;
  std::vector<Timer> timers_;
  Handler before_;
};

}  // namespace aliquot::broker
