// Broker: the one process that keeps the leases of a state directory.
//
//   STATE/broker.lock  held (flock) by the living broker: never two at once
//   STATE/broker.sock  administrators' socket (client.h)
//   STATE/leases/NAME  one directory per lease (lease_files.h)
//
// One epoll loop, and a thread for each GPU's compute gate (compute_thread.h); no children. Killed
// at any instruction it leaves what the next one needs in the leases' own files; until that comes
// attached processes run on within their grants. Everything on the thread that calls run() or
// turn(); stop() from any.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "broker/admin_socket.h"
#include "broker/book.h"
#include "broker/loop.h"
#include "common/clock.h"
#include "common/result.h"

namespace aliquot::broker {

struct BrokerOptions {
  std::filesystem::path state_directory;
  IdentityPath identity = IdentityPath::kAuto;
  SocketLimits socket;
  Audience audience = Audience::kOwner;
  // Leases that are held (containers, in which tenants are root) need a guarded grant.
  bool hold_guarded_only = false;
  int inherited_listener = -1;  // of broker.sock, from who started us (systemd); -1: made here
  Chooser choose = least_room;
  // What `notes` are answered with, asked on the loop; empty: none.
  std::function<std::vector<NoteRow>()> notes;
  // run() returns after so long without a lease or an administrator; 0: never.
  Nanoseconds idle_exit = 0;
  log::Log log;
};

class Broker {
 public:
  // Takes the lock, takes over what was left, opens the sockets. Errc::kUnavailable: another broker
  // has this directory. `probes` and `clock` outlive the Broker.
  static Result<std::unique_ptr<Broker>> open(BrokerOptions options, ProbeSource& probes,
                                              const Clock& clock);

  // Until stop(), a shutdown request, or idle_exit.
  void run() { loop_.run(); }
  void turn(int timeout_ms) { loop_.turn(timeout_ms); }
  void stop() { loop_.stop(); }
  Book& book() { return book_; }
  Loop& loop() { return loop_; }

 private:
  Broker(BrokerOptions options, ProbeSource& probes, const Clock& clock, UniqueFd lock);
  Status start();
  void end_when_idle();

  BrokerOptions options_;
  UniqueFd lock_;
  Loop loop_;
  Book book_;
  std::unique_ptr<AdminSocket> admin_;
  std::uint64_t seen_changes_ = 0;
  Nanoseconds busy_at_ = 0;
};

}  // namespace aliquot::broker
