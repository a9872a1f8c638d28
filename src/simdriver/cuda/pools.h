// Stream-ordered memory pools. A pool takes chunks of granules from the device and cuts
// allocations out of them; freed room stays reserved up to the release threshold. Under the
// library's lock.
#pragma once

#include <list>
#include <set>

#include "simdriver/cuda/library.h"
#include "simdriver/cuda/operations.h"

namespace aliquot::simdriver {

// Granules that a pool holds; an exportable pool's lie in blocks of the server.
struct PoolChunk {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  FreeRanges free;
  BlockKey key{};  // of the server's block; key.block 0: in the arena
  std::shared_ptr<MemoryFile> file;
  std::uint64_t file_offset = 0;
};

struct Pool {
  CUmemPoolProps properties{};
  DeviceView* device = nullptr;  // nullptr: memory of the host
  bool is_default = false;
  bool imported = false;
  bool destroyed = false;  // gone for the program; allocations are still out
  std::uint64_t release_threshold = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  int reuse[4] = {0, 1, 1, 1};  // CU_MEMPOOL_ATTR_REUSE_*: remembered
  std::list<PoolChunk> chunks;
  std::map<int, CUmemAccess_flags> access;  // by device ordinal
  std::uint64_t identity_block = 0;         // what an export stands for; imports know it again
};

Registry<Pool>& pools();
Pool& default_pool(DeviceView& device);
Pool& current_pool(DeviceView& device);

CUresult allocate_from_pool(Pool& pool, std::uint64_t bytes, std::uint64_t& address);
void free_to_pool(Allocation& allocation);
// Gives back whole free chunks until no more than `keep` bytes are reserved.
void trim_pool(Pool& pool, std::uint64_t keep);
void destroy_pool(Pool& pool);

}  // namespace aliquot::simdriver
