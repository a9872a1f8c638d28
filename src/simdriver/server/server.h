// The device server's loop: accepts clients, answers their requests, and lets the GPUs' time
// pass. Lazy: it wakes for a message, a bell, a death, a moment somebody waits for, and a slow
// tick while work is outstanding.
#pragma once

#include <unordered_map>

#include "common/result.h"
#include "simdriver/server/machine_state.h"

namespace aliquot::simdriver {

class Server {
 public:
  // Takes over a listening socket (listen_at).
  Server(MachineState& machine, UniqueFd listener);

  // Until a request or a signal on `stop_fd` (an eventfd or signalfd; -1: none) ends it.
  Status run(int stop_fd);

 private:
  enum class Source : std::uint64_t { kListener, kStop, kSocket, kProcess, kBell, kExports };

  Status watch(int fd, Source source, SessionId session);
  void accept_all();
  Result<std::unique_ptr<Session>> greet(UniqueFd socket);
  void on_ready(std::uint64_t tag);
  void on_bell(Session& session);
  // False: the session has to end.
  bool answer(Session& session);
  int wait_ms_or_ns(struct timespec& wait);

  MachineState& machine_;
  UniqueFd listener_;
  UniqueFd epoll_;
  bool stopped_ = false;
  Nanoseconds last_activity_ns_ = 0;
};

}  // namespace aliquot::simdriver
