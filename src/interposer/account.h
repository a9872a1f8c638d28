// The account: taking bytes of the share before the driver is asked, giving them back after.
//
// Every way to device memory follows one pattern: make a Reservation, call the driver, then commit
// what the driver took or let the Reservation roll back by going out of scope. No lock is held and
// no byte is taken twice; a refusal is counted in the ledger and nothing else happens.
//
// Any thread, while the tenant is attached. Not from inside a driver call.
#pragma once

#include <cstdint>

#include "interposer/tenant.h"

namespace aliquot::interposer {

// A place where memory lies that the share does not pay for (host memory).
inline constexpr unsigned kNoGpu = 0xff;

inline constexpr std::uint64_t kLinearGranule = 512;
inline constexpr std::uint64_t kBlockGranule = 2u << 20;

// Saturates instead of wrapping: a request for 2^64-1 bytes is refused, not rounded to 0.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t granule) {
  return bytes > ~granule ? ~0ull : (bytes + granule - 1) / granule * granule;
}
constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~0ull : product;
}

// Before a refusal the pools are read anew and the broker is asked to settle its dead; not so
// where a lock is held.
enum class Refusal { kAfterLastResort, kAtOnce };

// Returns committed bytes to the share; 0 bytes, which is all there ever is on kNoGpu: nothing.
void give_back_some(unsigned gpu, wire::Kind kind, std::uint64_t bytes);
inline void give_back(unsigned gpu, wire::Kind kind, std::uint64_t bytes) {
  if (bytes != 0) give_back_some(gpu, kind, bytes);
}

// Bytes of the share that belong to nobody yet.
class Reservation {
 public:
  Reservation(unsigned gpu, wire::Kind kind, std::uint64_t bytes,
              Refusal refusal = Refusal::kAfterLastResort)
      : gpu_(gpu), kind_(kind), bytes_(gpu == kNoGpu ? 0 : bytes) {
    granted_ = bytes_ == 0 || reserve(gpu, kind, bytes, refusal);
    if (!granted_) bytes_ = 0;
  }
  ~Reservation() {
    if (bytes_ != 0) give_back(gpu_, kind_, bytes_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // False: the share has no room; the call must answer "out of memory" without asking the driver.
  bool granted() const { return granted_; }
  // The driver took more or less than was reserved. False: more is not there; nothing changed.
  [[nodiscard]] bool resize(std::uint64_t bytes);
  // The bytes now belong to whoever the caller wrote them down for; `give_back` returns them.
  void commit() { bytes_ = 0; }

  unsigned gpu() const { return gpu_; }
  wire::Kind kind() const { return kind_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static bool reserve(unsigned gpu, wire::Kind kind, std::uint64_t bytes, Refusal refusal);

  unsigned gpu_;
  wire::Kind kind_;
  std::uint64_t bytes_;
  bool granted_;
};

// What the whole lease holds on this GPU, and what it may.
std::uint64_t used_bytes(unsigned gpu);
std::uint64_t limit_bytes(unsigned gpu);

[[gnu::always_inline]] inline void count_launch(unsigned gpu) {
  wire::Cell& cell = tenant().ledger().cell(tenant().slot(), gpu);
  cell.launches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace aliquot::interposer
