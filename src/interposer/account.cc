#include "interposer/account.h"

#include "interposer/pools.h"

namespace aliquot::interposer {
namespace {

wire::Cell& own_cell(unsigned gpu) { return tenant().ledger().cell(tenant().slot(), gpu); }

bool reserve_again(unsigned gpu, std::uint64_t bytes) {
  return tenant().quota(gpu).reserve(tenant().slot(), bytes) == wire::Outcome::kOk;
}

// Looks once more after our own pools have been read anew and the broker has subtracted its dead.
bool reserve_or_refuse(unsigned gpu, std::uint64_t bytes, Refusal refusal) {
  if (reserve_again(gpu, bytes)) return true;
  if (refusal == Refusal::kAfterLastResort &&
      bytes <= limit_bytes(gpu)) {  // a larger request no death can make room for
    if (settle_pools(gpu) && reserve_again(gpu, bytes)) return true;
    if (tenant().settle() && reserve_again(gpu, bytes)) return true;
  }
  if (tenant().is_observed()) {
    own_cell(gpu).would_refuse.fetch_add(1, std::memory_order_relaxed);
    return tenant().quota(gpu).without_limit().reserve(tenant().slot(), bytes) ==
           wire::Outcome::kOk;
  }
  own_cell(gpu).refusals.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// Where the first try has met another writer, or there is no room. Apart, so that the common case
// keeps everything in registers.
[[gnu::noinline]] bool reserve_among_others(unsigned gpu, wire::Kind kind, std::uint64_t bytes,
                                            Refusal refusal) {
  if (!reserve_or_refuse(gpu, bytes, refusal)) return false;
  tenant().quota(gpu).count(tenant().slot(), kind, static_cast<std::int64_t>(bytes));
  return true;
}
[[gnu::noinline]] void release_among_others(unsigned gpu, std::uint64_t bytes) {
  tenant().quota(gpu).release(tenant().slot(), bytes);
}

}  // namespace

bool Reservation::reserve(unsigned gpu, wire::Kind kind, std::uint64_t bytes, Refusal refusal) {
  const wire::Quota quota = tenant().quota(gpu);
  const unsigned slot = tenant().slot();
  if (quota.try_to_reserve(slot, bytes) != wire::Outcome::kOk)
    return reserve_among_others(gpu, kind, bytes, refusal);
  quota.count(slot, kind, static_cast<std::int64_t>(bytes));
  return true;
}

bool Reservation::resize(std::uint64_t bytes) {
  if (gpu_ == kNoGpu) return true;
  if (bytes > bytes_ && !reserve(gpu_, kind_, bytes - bytes_, Refusal::kAfterLastResort))
    return false;
  if (bytes < bytes_) give_back(gpu_, kind_, bytes_ - bytes);
  bytes_ = bytes;
  return true;
}

void give_back_some(unsigned gpu, wire::Kind kind, std::uint64_t bytes) {
  const wire::Quota quota = tenant().quota(gpu);
  const unsigned slot = tenant().slot();
  quota.count(slot, kind, -static_cast<std::int64_t>(bytes));
  if (quota.try_to_release(slot, bytes) != wire::Outcome::kOk) release_among_others(gpu, bytes);
}

std::uint64_t used_bytes(unsigned gpu) { return tenant().quota(gpu).used(); }

std::uint64_t limit_bytes(unsigned gpu) {
  return tenant().grant().gpu[gpu].memory_limit_bytes.load(std::memory_order_acquire);
}

}  // namespace aliquot::interposer
