// The reference: what a machine with the CUDA driver API does, as slow and plain as it can be
// said. Random programs (program.h) run against it and against the simulated driver, and every
// result and number must agree. It shares no code with the driver; where CUDA leaves something to
// the driver (where a small allocation lies, how a pool grows), it states our driver's choice.
//
// It knows results and numbers, never addresses or handles: things have ids. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "driver_abi/cuda_types.h"

namespace aliquot::reference {

using Bytes = std::uint64_t;
using Id = int;

inline constexpr Bytes kGranule = 2u << 20;
// Contents are followed in the first bytes of each piece of memory.
inline constexpr Bytes kSeen = 8192;

// -1: a byte that the program has not determined.
using Contents = std::vector<std::int16_t>;

// Used pieces of a range, by offset; the lowest free place is given first.
class Range {
 public:
  explicit Range(Bytes bytes) : bytes_(bytes) {}
  std::optional<Bytes> take(Bytes bytes);
  void give(Bytes at) { used_.erase(at); }
  bool is_empty() const { return used_.empty(); }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::map<Bytes, Bytes> used_;
};

enum class Kind { kLinear, kManaged, kPool, kArray, kPhysical, kGraph, kHost };

struct Memory {
  Kind kind = Kind::kLinear;
  unsigned gpu = 0;
  Bytes bytes = 0;
  Id context = -1;  // what it ends with; -1: nothing
  Bytes charged = 0;
  Id block = -1;  // small linear memory: the block it lies in
  Id pool = -1;
  Id chunk = -1;
  Bytes at = 0;  // in its block or chunk
  std::shared_ptr<Contents> contents = {};
  unsigned references = 0;  // of physical memory: handles and mappings
};

struct Pool {
  unsigned gpu = 0;
  bool is_default = false;
  bool destroyed = false;
  Bytes threshold = 0;
  Bytes used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  std::vector<std::pair<Id, Range>> chunks = {};  // oldest first
};

class Model {
 public:
  Model(std::vector<Bytes> totals, Bytes context_bytes);

  Bytes free_bytes(unsigned gpu) const { return total_[gpu] - used_[gpu]; }
  Bytes total_bytes(unsigned gpu) const { return total_[gpu]; }

  CUresult open_context(unsigned gpu, Id& id);
  void close_context(Id id);
  unsigned gpu_of(Id context) const { return contexts_.at(context); }

  CUresult linear(Id context, Bytes bytes, Id& id);
  CUresult managed(Id context, Bytes bytes, Id& id);
  CUresult array(Id context, Bytes bytes, Id& id);
  CUresult physical(unsigned gpu, Bytes bytes, Id& id);
  CUresult graph(unsigned gpu, Bytes bytes, Id& id);
  Id host(Id context, Bytes bytes);
  // Of whatever kind: what the program may free is free. Physical memory: one reference less.
  void release(Id id);

  Id make_pool(unsigned gpu, bool is_default);
  void destroy_pool(Id pool);
  void trim(Id pool, Bytes keep);
  CUresult from_pool(Id pool, Bytes bytes, Id& id);

  Memory& memory(Id id) { return memories_.at(id); }
  Pool& pool(Id id) { return pools_.at(id); }
  std::vector<Id> all_of(const std::set<Kind>& kinds) const;
  std::vector<Id> live_pools() const;

  // Another process opens linear memory: its block lives until both have let go.
  Id share(Id id);  // the block's name, for the other process
  void open_shared(Id share);
  void close_shared(Id share);

 private:
  struct Block {  // 2 MiB or more that one or several linear allocations lie in
    unsigned gpu;
    Id context;
    Range range;
    bool held = true;  // by the process that made it
    unsigned others = 0;
  };
  bool take(unsigned gpu, Bytes bytes);
  void give(unsigned gpu, Bytes bytes) { used_[gpu] -= bytes; }
  Id add(Memory memory);
  bool take_chunk(Pool& pool, Bytes bytes);
  bool cut(Id pool, Bytes bytes, Id& id);
  void let_go(Id block);

  std::vector<Bytes> total_, used_;
  Bytes context_bytes_;
  Id last_ = 0;
  std::map<Id, unsigned> contexts_;
  std::map<Id, Memory> memories_;
  std::map<Id, Block> blocks_;
  std::map<Id, Pool> pools_;
};

Bytes round_up(Bytes bytes, Bytes to);

}  // namespace aliquot::reference
