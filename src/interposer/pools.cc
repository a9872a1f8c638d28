#include "interposer/pools.h"

#include <algorithm>
#include <span>

#include "interposer/devices.h"
#include "interposer/holdings.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {

struct PoolRecord {
  enum class What : std::uint8_t { kFree, kPool, kGraphs, kEnded };
  // Whose record this is; changed under records_lock.
  std::atomic<What> what{What::kFree};
  std::atomic<unsigned> gpu{kNoGpu};
  std::atomic<CUmemoryPool> pool{nullptr};
  // The rest under this; taken after records_lock where both are.
  ShortLock lock;
  unsigned calls = 0;         // under way
  std::uint64_t held = 0;     // charged, reservations of calls under way included
  std::uint64_t newest = 0;   // the ticket of the newest reading
  std::uint64_t reading = 0;  // and what it said
  std::atomic<std::uint64_t> tickets{0};
};

constinit std::atomic<unsigned> pools_known{0};

namespace {

using wire::Kind;

constexpr unsigned kMaxPools = 512;
constinit PoolRecord records[kMaxPools];
constinit PoolRecord graphs[wire::kMaxGpus];
constinit std::atomic<std::int64_t> graph_bytes[wire::kMaxGpus];
constinit ShortLock records_lock;

// Those that were ever in use.
std::span<PoolRecord> known_records() {
  return {records, pools_known.load(std::memory_order_acquire)};
}

Kind kind_of(const PoolRecord& record) {
  return record.what == PoolRecord::What::kGraphs ? Kind::kGraph : Kind::kPool;
}

std::uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  std::uint64_t value = 0;
  return real::cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS ? value : 0;
}

// What the driver keeps now. For graphs: beyond those that are charged as instantiated. False: the
// driver does not say.
bool read(const PoolRecord& record, std::uint64_t& bytes) {
  if (record.what == PoolRecord::What::kPool)
    return real::cuMemPoolGetAttribute(record.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) ==
           CUDA_SUCCESS;
  std::uint64_t reserved = 0;
  if (real::cuDeviceGetGraphMemAttribute(
          device_of(record.gpu), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
    return false;
  const auto charged = static_cast<std::uint64_t>(
      std::max<std::int64_t>(graph_bytes[record.gpu].load(std::memory_order_relaxed), 0));
  bytes = reserved > charged ? reserved - charged : 0;
  return true;
}

PoolRecord* find(std::uint64_t handle, PoolRecord::What what) {
  const Holding holding(records_lock);
  for (PoolRecord& record : known_records())
    if (record.what == what && name_of(record.pool) == handle) return &record;
  return nullptr;
}

std::uint64_t held_bytes(PoolRecord& record) {
  const Holding holding(record.lock);
  return record.held;
}

bool settle_record(PoolRecord& record) {
  const std::uint64_t before = held_bytes(record);
  if (before == 0) return false;
  PoolCall call(record, 0);
  return call.settle() && held_bytes(record) < before;
}

void end_record(PoolRecord& record, std::uint64_t handle) {
  const Holding holding(records_lock);
  if (name_of(record.pool) != handle) return;  // another thread was first, and it has a new owner
  const Holding settled(record.lock);
  record.what = record.held != 0 ? PoolRecord::What::kEnded : PoolRecord::What::kFree;
}

}  // namespace

PoolRecord* pool_record(CUmemoryPool pool, unsigned gpu) {
  const Holding holding(records_lock);
  PoolRecord* free = nullptr;
  for (PoolRecord& record : known_records()) {
    if (record.what == PoolRecord::What::kPool && record.pool == pool) return &record;
    if (record.what == PoolRecord::What::kFree && free == nullptr) free = &record;
  }
  const unsigned known = pools_known.load(std::memory_order_relaxed);
  if (free == nullptr && known < kMaxPools) {
    free = &records[known];
    pools_known.store(known + 1, std::memory_order_release);
  }
  if (free == nullptr) return nullptr;
  const Holding settled(free->lock);
  free->pool = pool;
  free->gpu = gpu;
  free->held = free->reading = free->newest = 0;
  free->tickets = 0;
  free->what = PoolRecord::What::kPool;
  return free;
}

PoolRecord* graph_record(unsigned gpu) {
  graphs[gpu].gpu = gpu;
  graphs[gpu].what = PoolRecord::What::kGraphs;  // once and for all, by whoever comes first
  return &graphs[gpu];
}

void add_graph_bytes(unsigned gpu, std::int64_t bytes) {
  graph_bytes[gpu].fetch_add(bytes, std::memory_order_relaxed);
}

PoolCall::PoolCall(PoolRecord& record, std::uint64_t most)
    : record_(record), reservation_(record.gpu, kind_of(record), most), most_(0) {
  if (!reservation_.granted()) return;
  const Holding holding(record_.lock);
  most_ = reservation_.bytes();
  record_.held += most_;
  reservation_.commit();
  ++record_.calls;
  entered_ = true;
}

// A call that failed before it was settled gives its room back.
PoolCall::~PoolCall() {
  if (!entered_) return;
  const Holding holding(record_.lock);
  --record_.calls;
  record_.held -= std::min(most_, record_.held);
  give_back(record_.gpu, kind_of(record_), most_);
}

bool PoolCall::settle() {
  if (!entered_ || record_.gpu == kNoGpu) return true;
  const std::uint64_t ticket = record_.tickets.fetch_add(1, std::memory_order_acq_rel) + 1;
  std::uint64_t reading = 0;
  if (!read(record_, reading)) return false;  // as if it had grown beyond all room
  const Holding holding(record_.lock);
  if (ticket > record_.newest) {
    record_.newest = ticket;
    record_.reading = reading;
  }
  // With others under way their room stays until they settle: their growth may be in the reading.
  std::uint64_t target = record_.reading;
  if (record_.calls > 1) target = std::max(target, record_.held - std::min(most_, record_.held));
  if (target > record_.held) {
    Reservation more(record_.gpu, kind_of(record_), target - record_.held, Refusal::kAtOnce);
    if (!more.granted()) return false;
    more.commit();
  } else {
    give_back(record_.gpu, kind_of(record_), record_.held - target);
  }
  record_.held = target;
  --record_.calls;
  entered_ = false;
  return true;
}

// A pool with enough free memory need not grow; if it has to all the same, settle sees it.
std::uint64_t most_growth(CUmemoryPool pool, std::uint64_t bytes) {
  const std::uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  const std::uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  const std::uint64_t free = reserved > used ? reserved - used : 0;
  return round_up(bytes, kLinearGranule) <= free ? 0 : round_up(bytes, kBlockGranule);
}

void settle_all_pools() {
  for (PoolRecord& record : known_records())
    if (record.what == PoolRecord::What::kPool) settle_record(record);
}

bool settle_pools(unsigned gpu) {
  bool came_back = false;
  for (PoolRecord& record : known_records())
    if (record.what == PoolRecord::What::kPool && record.gpu == gpu)
      came_back |= settle_record(record);
  if (gpu < wire::kMaxGpus && graphs[gpu].what == PoolRecord::What::kGraphs)
    came_back |= settle_record(graphs[gpu]);
  return came_back;
}

void settle_pool_of(const Held& freed) {
  if (PoolRecord* ended = find(freed.owner, PoolRecord::What::kEnded)) {
    {
      const Holding holding(ended->lock);
      const std::uint64_t bytes = std::min<std::uint64_t>(freed.bytes, ended->held);
      give_back(ended->gpu, Kind::kPool, bytes);
      ended->held -= bytes;
    }
    end_record(*ended, freed.owner);
    return;
  }
  if (PoolRecord* record = find(freed.owner, PoolRecord::What::kPool)) settle_record(*record);
}

void pool_ended(CUmemoryPool pool, std::uint64_t used) {
  PoolRecord* record = find(name_of(pool), PoolRecord::What::kPool);
  if (record == nullptr) return;
  {
    const Holding holding(record->lock);
    const std::uint64_t rest = std::min(used, record->held);
    give_back(record->gpu, Kind::kPool, record->held - rest);
    record->held = rest;
  }
  end_record(*record, name_of(pool));
}

void forget_pools() {
  records_lock.reset();
  pools_known = 0;
  for (auto* list : {records, graphs}) {
    const unsigned count = list == records ? kMaxPools : wire::kMaxGpus;
    for (unsigned i = 0; i < count; ++i) {
      list[i].lock.reset();
      list[i].what = PoolRecord::What::kFree;
      list[i].calls = 0;
      list[i].held = 0;
    }
  }
  for (auto& bytes : graph_bytes) bytes = 0;
}

}  // namespace aliquot::interposer
