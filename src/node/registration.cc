#include "node/registration.h"

#include <algorithm>

namespace aliquot::node {
namespace {

constexpr Nanoseconds kFirstPause = 100 * kMillisecond;
constexpr Nanoseconds kLongestPause = 10 * kSecond;
// kubelet opens its stream within milliseconds of a registration.
constexpr Nanoseconds kStreamPatience = 3 * kSecond;

}  // namespace

Step RegistrationRule::next(const Sight& sight, Nanoseconds now) {
  if (sight.stream) stream_at_ = now;
  // Before kubelet has its socket it may still wipe the directory.
  if (!sight.kubelet) return Step::kWait;
  if (seen_ != sight.kubelet) {  // a new kubelet: what went wrong with the old one is over
    seen_ = sight.kubelet;
    try_at_ = now;
    pause_ = 0;
  }
  if (!sight.own_socket) return now >= try_at_ ? Step::kServe : Step::kWait;
  const bool silent = now - stream_at_ > kStreamPatience;
  if (with_ == sight.kubelet && !silent) return Step::kWait;
  return now >= try_at_ ? Step::kRegister : Step::kWait;
}

void RegistrationRule::served(bool well, Nanoseconds now) {
  with_.reset();
  if (!well) back_off(now);
}

void RegistrationRule::registered(const SocketMark& with, Nanoseconds now) {
  with_ = with;
  stream_at_ = now;
  pause_ = 0;
}

void RegistrationRule::refused(Nanoseconds now) {
  with_.reset();
  back_off(now);
}

void RegistrationRule::back_off(Nanoseconds now) {
  pause_ = pause_ == 0 ? kFirstPause : std::min(2 * pause_, kLongestPause);
  try_at_ = now + pause_;
}

}  // namespace aliquot::node
