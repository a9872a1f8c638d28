// Device memory as a process sees it: addresses, allocations, and what lies in them. Addresses are
// one reserved window of the process that nothing is mapped in, so a stray dereference faults as it
// would on a machine with a GPU; managed memory alone is mapped. Under the library's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "driver_abi/cuda_types.h"
#include "simdriver/channel/messages.h"
#include "simdriver/cuda/memory_file.h"
#include "simdriver/cuda/range_map.h"

namespace aliquot::simdriver {

struct Context;
struct DeviceView;
struct Pool;

enum class AllocationKind : std::uint8_t {
  kLinear,
  kManaged,
  kPool,
  kVmm,    // a mapping of a handle
  kArray,  // reached through its array only
  kIpc,    // opened from another process
  kGraph,  // of a graph's allocation node, which keeps the addresses
};

// A range of addresses with contents.
struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;          // as asked for
  std::uint64_t charged_bytes = 0;  // 0: shares a small block, or charged elsewhere
  AllocationKind kind = AllocationKind::kLinear;
  Context* context = nullptr;  // whose end frees it; nullptr: nobody's (pools, VMM)
  DeviceView* device = nullptr;
  std::shared_ptr<MemoryFile> file;
  std::uint64_t file_offset = 0;
  bool accessible = true;
  Pool* pool = nullptr;
  std::uint64_t id = 0;
  std::uint64_t block = 0;                  // the server's block, for shared ones
  std::uint64_t handle = 0;                 // VMM: the mapped handle
  std::map<int, CUmemAccess_flags> access;  // VMM: by device ordinal
  bool sync_memops = false;
  unsigned graph_launches = 1;  // graph memory: launches that have not freed it yet
};

// Pinned memory of the host.
struct HostRange {
  void* base = nullptr;
  std::size_t bytes = 0;
  unsigned flags = 0;
  bool registered = false;  // the program's own memory
  Context* context = nullptr;
  std::uint64_t id = 0;
};

class Memory {
 public:
  // `arena` is the process's file from the server; nullptr: no room for the addresses.
  static std::unique_ptr<Memory> make(UniqueFd arena, Commit commit);
  ~Memory();

  bool is_device_address(std::uint64_t address) const {
    return address - window_.base < window_.bytes || address - low_.base < low_.bytes;
  }
  // Addresses without contents. `at` 0: anywhere. 0: none left, or that place is taken.
  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t at = 0);
  // Addresses of 32 bits. 0: none left.
  std::uint64_t reserve_low(std::uint64_t bytes, std::uint64_t align);
  void unreserve(std::uint64_t base, std::uint64_t bytes);

  Allocation& add(Allocation allocation);
  // The allocation that `address` lies in; nullptr: none.
  Allocation* find(std::uint64_t address);
  void remove(std::uint64_t base);
  std::map<std::uint64_t, Allocation>& all() { return allocations_; }

  const std::shared_ptr<MemoryFile>& arena() const { return arena_; }
  std::uint64_t arena_offset(std::uint64_t address) const {
    const Window& window = window_of(address);
    return window.arena_offset + (address - window.base);
  }

  // Ranges that graphs will have memory for when they run: base and bytes.
  std::map<std::uint64_t, std::uint64_t>& promised() { return promised_; }

  // All of the range has contents that may be used, or is promised.
  bool covers(std::uint64_t address, std::uint64_t bytes);
  // CUDA_ERROR_INVALID_VALUE outside allocations; CUDA_ERROR_OPERATING_SYSTEM when the host has no
  // memory left.
  CUresult load(void* to, std::uint64_t from, std::uint64_t bytes);
  CUresult store(std::uint64_t to, const void* from, std::uint64_t bytes);
  CUresult fill(std::uint64_t to, std::uint64_t bytes, Pattern pattern);

  std::map<std::uintptr_t, HostRange>& host_ranges() { return host_ranges_; }
  HostRange* find_host(const void* address);

  Commit& commit() { return commit_; }

 private:
  // Addresses that nothing else of the process is at, and where in the arena their contents lie.
  struct Window {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t arena_offset = 0;
    FreeRanges free = FreeRanges(0, 0);
  };

  Memory(std::uint64_t base, std::uint64_t window_bytes, UniqueFd arena, Commit commit);

  const Window& window_of(std::uint64_t address) const {
    return address - low_.base < low_.bytes ? low_ : window_;
  }
  Window& window_of(std::uint64_t address) {
    return address - low_.base < low_.bytes ? low_ : window_;
  }
  void open_low_window();

  template <typename Visit>
  CUresult walk(std::uint64_t address, std::uint64_t bytes, Visit visit);

  Window window_;
  Window low_;  // below 2 GiB; opened when a program first asks
  Commit commit_;
  std::shared_ptr<MemoryFile> arena_;
  std::map<std::uint64_t, Allocation> allocations_;
  std::map<std::uintptr_t, HostRange> host_ranges_;
  std::map<std::uint64_t, std::uint64_t> promised_;
};

}  // namespace aliquot::simdriver
