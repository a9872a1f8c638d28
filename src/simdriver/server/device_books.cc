#include "simdriver/server/device_books.h"

#include <numeric>

namespace aliquot::simdriver {
namespace {

std::uint64_t sum(const DeviceBooks::Held& held) {
  return std::accumulate(held.begin(), held.end(), std::uint64_t{0});
}

}  // namespace

std::uint64_t round_up_to_granule(std::uint64_t bytes) {
  return bytes / kGranuleBytes * kGranuleBytes + (bytes % kGranuleBytes == 0 ? 0 : kGranuleBytes);
}

std::optional<std::uint64_t> DeviceBooks::take(SessionId who, MemoryKind kind,
                                               std::uint64_t bytes) {
  // Compared before rounding: a request near 2^64 must not wrap.
  if (bytes > free_bytes()) return std::nullopt;
  const std::uint64_t charged = round_up_to_granule(bytes);
  if (charged > free_bytes()) return std::nullopt;
  used_bytes_ += charged;
  holders_[who][static_cast<std::size_t>(kind)] += charged;
  return charged;
}

bool DeviceBooks::give(SessionId who, MemoryKind kind, std::uint64_t bytes) {
  const auto holder = holders_.find(who);
  if (holder == holders_.end() || bytes > total_bytes_) return false;
  const std::uint64_t charged = round_up_to_granule(bytes);
  std::uint64_t& held = holder->second[static_cast<std::size_t>(kind)];
  if (charged > held) return false;
  held -= charged;
  used_bytes_ -= charged;
  if (sum(holder->second) == 0) holders_.erase(holder);
  return true;
}

bool DeviceBooks::hand_over(SessionId from, SessionId to, MemoryKind kind, std::uint64_t bytes) {
  if (!give(from, kind, bytes)) return false;
  return take(to, kind, bytes).has_value();
}

std::uint64_t DeviceBooks::forget(SessionId who) {
  const auto holder = holders_.find(who);
  if (holder == holders_.end()) return 0;
  const std::uint64_t bytes = sum(holder->second);
  used_bytes_ -= bytes;
  holders_.erase(holder);
  return bytes;
}

std::uint64_t DeviceBooks::held_bytes(SessionId who) const {
  const auto holder = holders_.find(who);
  return holder == holders_.end() ? 0 : sum(holder->second);
}

}  // namespace aliquot::simdriver
