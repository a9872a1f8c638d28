// The memory book of one simulated GPU: who holds how many bytes, of which kind, and what is left.
// Pure: no clock, socket or thread; the server's loop is its only caller. What lies in the memory
// is none of its business (the clients' own files hold that).
//
// Everything is charged in granules of 2 MiB, as the driver takes memory from the device
// (facts: cuMemAlloc suballocates 2 MiB blocks; VMM has a 2 MiB granularity).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {

using SessionId = std::uint64_t;

std::uint64_t round_up_to_granule(std::uint64_t bytes);

class DeviceBooks {
 public:
  using Held = std::array<std::uint64_t, static_cast<std::size_t>(MemoryKind::kCount)>;

  explicit DeviceBooks(std::uint64_t total_bytes) : total_bytes_(total_bytes) {}

  // The bytes charged (whole granules), or nothing when they do not fit.
  std::optional<std::uint64_t> take(SessionId who, MemoryKind kind, std::uint64_t bytes);
  // False, and nothing changes, when `who` does not hold that much of the kind.
  bool give(SessionId who, MemoryKind kind, std::uint64_t bytes);
  // The same bytes, another holder: an exporter went and an importer still maps them.
  bool hand_over(SessionId from, SessionId to, MemoryKind kind, std::uint64_t bytes);
  // Whatever a dead process held. Returns the bytes.
  std::uint64_t forget(SessionId who);

  std::uint64_t total_bytes() const { return total_bytes_; }
  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t free_bytes() const { return total_bytes_ - used_bytes_; }
  std::uint64_t held_bytes(SessionId who) const;
  const std::map<SessionId, Held>& holders() const { return holders_; }

 private:
  std::uint64_t total_bytes_;
  std::uint64_t used_bytes_ = 0;
  std::map<SessionId, Held> holders_;
};

}  // namespace aliquot::simdriver
