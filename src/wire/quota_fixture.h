// A grant and a ledger in memory that children of fork share. For tests and benchmarks.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "wire/grant.h"
#include "wire/ledger.h"
#include "wire/quota.h"

namespace aliquot::wire {

struct QuotaFixture {
  explicit QuotaFixture(std::uint64_t limit, unsigned gpus = 1, unsigned slots = 64)
      : bytes(sizeof(Grant) + LedgerView::size_bytes(gpus, slots)),
        base(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        grant(*static_cast<Grant*>(base)),
        view(static_cast<char*>(base) + sizeof(Grant), gpus, slots),
        quota(view, grant, 0) {
    for (auto& gpu : grant.gpu) gpu.memory_limit_bytes = limit;
  }
  ~QuotaFixture() { munmap(base, bytes); }
  // Back to an empty ledger.
  void clear() const { std::memset(&view.header(), 0, bytes - sizeof(Grant)); }
  QuotaFixture(const QuotaFixture&) = delete;
  QuotaFixture& operator=(const QuotaFixture&) = delete;

  std::size_t bytes;
  void* base;
  Grant& grant;
  LedgerView view;
  Quota quota;
};

}  // namespace aliquot::wire
