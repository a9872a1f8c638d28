// Memory pools, and the memory of graphs: charged by what the driver keeps, not by what was asked.
//
// A pool holds on to memory after a free until it is trimmed or synchronised, so its charge is the
// driver's "reserved" figure. The most a call can add is reserved before it, the figure is read
// after it, and the difference settled. Several threads may be at it: each reading carries a
// ticket taken after its call, and the reading with the highest ticket knows of every earlier call.
//
// Any thread; the record's lock is not held over a driver call.
#pragma once

#include <atomic>
#include <cstdint>

#include "driver_abi/cuda_types.h"
#include "interposer/account.h"
#include "interposer/held_table.h"
#include "interposer/holdings.h"

namespace aliquot::interposer {

struct PoolRecord;

// The record of a pool on `gpu` (kNoGpu: its memory is the host's); null: no room for another.
PoolRecord* pool_record(CUmemoryPool pool, unsigned gpu);
// The record of what the driver keeps for graphs on `gpu` beyond the graphs that are instantiated.
PoolRecord* graph_record(unsigned gpu);
// Instantiated graphs: their need is charged with them, see guards_graphs.cc.
void add_graph_bytes(unsigned gpu, std::int64_t bytes);

// One call that may change what a pool keeps. With room for `most` more bytes.
class PoolCall {
 public:
  PoolCall(PoolRecord& record, std::uint64_t most);
  ~PoolCall();
  PoolCall(const PoolCall&) = delete;
  PoolCall& operator=(const PoolCall&) = delete;

  bool granted() const { return reservation_.granted(); }
  // After the driver's call: charge what the pool keeps now. False: it grew by more than there is
  // room for, or the driver does not say; the caller undoes its call and settles again.
  [[nodiscard]] bool settle();

 private:
  PoolRecord& record_;
  Reservation reservation_;
  std::uint64_t most_;
  bool entered_ = false;
};

// The most that an allocation of `bytes` can add to the pool.
std::uint64_t most_growth(CUmemoryPool pool, std::uint64_t bytes);

// How many pools there ever were at once.
extern constinit std::atomic<unsigned> pools_known;  // NOLINT: the process's
void settle_all_pools();
// After a stream, an event or a context was waited for: pools have given back what nobody uses.
inline void work_has_ended() {
  if (pools_known.load(std::memory_order_relaxed) != 0) settle_all_pools();
}
// Reads every pool of the GPU anew. True: some of it came back to the share.
bool settle_pools(unsigned gpu);
// After an allocation of a pool was freed: its pool anew, or its part of a pool that is gone.
void settle_pool_of(const Held& freed);
// Around the driver's free of a pointer, `call`, of whatever kind it is: any free takes any
// address. One that we know nothing of is the driver's business (a view into an array, another
// library's).
template <class Call>
CUresult release(CUdeviceptr address, Call call) {
  const Held entry = held_pointers().take(address);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    put_back(held_pointers(), entry);
    return result;
  }
  let_go(entry);
  if (entry.kind == static_cast<std::uint64_t>(wire::Kind::kPool)) settle_pool_of(entry);
  return result;
}

// The pool has been destroyed; `used` bytes live on in allocations that are still to be freed.
void pool_ended(CUmemoryPool pool, std::uint64_t used);

void forget_pools();

}  // namespace aliquot::interposer
