// SigbusGuard: the broker outlives a tenant that truncates a file both have mapped.
//
// An access beyond the end of a mapped file is SIGBUS. Inside a watched range the handler puts an
// anonymous page of zeros under the access and marks the range; everywhere else the signal does
// what it did before. A signal handler can reach static memory only, hence the one static table in
// the .cc. watch() and the destructor on the thread that owns the mapping; the handler on any.
#pragma once

#include <cstddef>

#include "common/result.h"

namespace aliquot::broker {

class SigbusGuard {
 public:
  // Installs the handler on first use. Errc::kExhausted when too many ranges are watched.
  static Result<SigbusGuard> watch(void* base, std::size_t bytes);

  SigbusGuard() = default;
  SigbusGuard(SigbusGuard&& other) noexcept : entry_(other.entry_) { other.entry_ = -1; }
  SigbusGuard& operator=(SigbusGuard&& other) noexcept;
  SigbusGuard(const SigbusGuard&) = delete;
  SigbusGuard& operator=(const SigbusGuard&) = delete;
  ~SigbusGuard();

  // Whether an access fell into a hole: what was read there since is zeros.
  bool tripped() const;

 private:
  explicit SigbusGuard(int entry) : entry_(entry) {}
  int entry_ = -1;
};

}  // namespace aliquot::broker
