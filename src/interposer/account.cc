#include "interposer/account.h"

#include <algorithm>

#include "interposer/pools.h"

namespace aliquot::interposer {
namespace {

wire::Cell& own_cell(unsigned gpu) { return tenant().ledger().cell(tenant().slot(), gpu); }

bool reserve(unsigned gpu, std::uint64_t bytes) {
  return tenant().quota(gpu).reserve(tenant().slot(), bytes) == wire::Outcome::kOk;
}

// Looks once more after our own pools have been read anew and the broker has subtracted its dead.
bool reserve_or_refuse(unsigned gpu, std::uint64_t bytes, Refusal refusal) {
  if (reserve(gpu, bytes)) return true;
  if (refusal == Refusal::kAfterLastResort &&
      bytes <= limit_bytes(gpu)) {  // a larger request no death can make room for
    if (settle_pools(gpu) && reserve(gpu, bytes)) return true;
    if (tenant().settle() && reserve(gpu, bytes)) return true;
  }
  own_cell(gpu).refusals.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

Reservation::Reservation(unsigned gpu, wire::Kind kind, std::uint64_t bytes, Refusal refusal)
    : gpu_(gpu), kind_(kind), bytes_(bytes) {
  granted_ = gpu == kNoGpu || bytes == 0 || reserve_or_refuse(gpu, bytes, refusal);
  if (!granted_ || gpu == kNoGpu) bytes_ = 0;
}

Reservation::~Reservation() {
  if (bytes_ != 0) tenant().quota(gpu_).release(tenant().slot(), bytes_);
}

bool Reservation::resize(std::uint64_t bytes) {
  if (gpu_ == kNoGpu) return true;
  if (bytes > bytes_ && !reserve_or_refuse(gpu_, bytes - bytes_, Refusal::kAfterLastResort))
    return false;
  if (bytes < bytes_) tenant().quota(gpu_).release(tenant().slot(), bytes_ - bytes);
  bytes_ = bytes;
  return true;
}

void Reservation::commit() {
  if (bytes_ == 0) return;
  tenant().quota(gpu_).count(tenant().slot(), kind_, static_cast<std::int64_t>(bytes_));
  bytes_ = 0;
}

void give_back(unsigned gpu, wire::Kind kind, std::uint64_t bytes) {
  if (gpu == kNoGpu || bytes == 0) return;
  const wire::Quota quota = tenant().quota(gpu);
  quota.count(tenant().slot(), kind, -static_cast<std::int64_t>(bytes));
  quota.release(tenant().slot(), bytes);
}

std::uint64_t used_bytes(unsigned gpu) { return tenant().quota(gpu).used(); }

std::uint64_t limit_bytes(unsigned gpu) {
  return std::min(tenant().grant().gpu[gpu].memory_limit_bytes.load(std::memory_order_acquire),
                  wire::kUnlimitedBytes);
}

void count_launch(unsigned gpu) {
  if (gpu != kNoGpu) own_cell(gpu).launches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace aliquot::interposer
