// RegistrationRule: when to serve and when to register with kubelet. Pure: told what is seen and
// what time it is, it says what to do next.
//
// A kubelet that starts removes every socket in its directory and makes its own anew, at times with
// the same inode; so its socket is known by inode and change time. Reasons to serve anew: our
// socket is gone or another's. Reasons to register: another kubelet socket than the one registered
// with, or no stream from it for a while. An event that comes late brings nothing new to see, and
// so nothing is done twice. Facts with their sources: docs/node.md. One thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace aliquot::node {

struct SocketMark {
  std::uint64_t device = 0, inode = 0;
  std::int64_t change_ns = 0;
  bool operator==(const SocketMark&) const = default;
};

struct Sight {
  std::optional<SocketMark> kubelet;  // its socket, where there is one
  bool own_socket = false;            // ours is there and is ours
  bool stream = false;                // kubelet listens to us
};

enum class Step { kWait, kServe, kRegister };

class RegistrationRule {
 public:
  // What to do now; the caller does it and says how it went.
  Step next(const Sight& sight, Nanoseconds now);

  void served(bool well, Nanoseconds now);
  // `with`: kubelet's socket as it was before the call.
  void registered(const SocketMark& with, Nanoseconds now);
  // kubelet was not there, or did not want us.
  void refused(Nanoseconds now);

  bool is_registered() const { return with_.has_value(); }

 private:
  void back_off(Nanoseconds now);

  std::optional<SocketMark> with_;  // registered with
  std::optional<SocketMark> seen_;  // tried last
  Nanoseconds try_at_ = 0;
  Nanoseconds pause_ = 0;
  Nanoseconds stream_at_ = 0;  // a stream was seen, or may be expected from here
};

}  // namespace aliquot::node
