#include "simdriver/cuda/allocate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace aliquot::simdriver {
namespace {

// cuMemAlloc: multiples of 512 bytes; below 1 MiB several share a 2 MiB block (facts: cuda.md 5).
constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kSmallBytes = 1u << 20;
// Rows start at multiples of this (what cuMemAllocPitch gives on real GPUs).
constexpr std::uint64_t kPitchAlignment = 512;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

CUresult charge(const DeviceView& device, MemoryKind kind, std::uint64_t bytes) {
  return library().ask(Op::kMemoryTake, MemoryRequest{device.server, kind, bytes});
}

void discharge(const DeviceView& device, MemoryKind kind, std::uint64_t bytes) {
  if (bytes != 0) library().ask(Op::kMemoryGive, MemoryRequest{device.server, kind, bytes});
}

// Charges granules that have addresses, or gives those back.
CUresult charge_granules(const DeviceView& device, MemoryKind kind, std::uint64_t bytes,
                         std::uint64_t base) {
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = charge(device, kind, bytes);
  if (result != CUDA_SUCCESS) library().memory().unreserve(base, bytes);
  return result;
}

// Charged granules with addresses. 0 bytes left over when it fails.
CUresult take_granules(const DeviceView& device, MemoryKind kind, std::uint64_t bytes,
                       std::uint64_t& base) {
  base = library().memory().reserve(bytes, kGranuleBytes);
  return charge_granules(device, kind, bytes, base);
}

// Of granules that were taken, in the arena.
void add_granules(Allocation allocation, std::uint64_t base, std::uint64_t bytes,
                  std::uint64_t charged) {
  Memory& memory = library().memory();
  allocation.base = base;
  allocation.bytes = bytes;
  allocation.charged_bytes = charged;
  allocation.file = memory.arena();
  allocation.file_offset = memory.arena_offset(base);
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
}

CUresult take_from_small_block(Context& context, std::uint64_t bytes, std::uint64_t& address) {
  for (SmallBlock& block : context.small_blocks) {
    if (const auto at = block.free.take(bytes, kAlignment)) {
      address = *at;
      return CUDA_SUCCESS;
    }
  }
  std::uint64_t base = 0;
  const CUresult result = take_granules(*context.device, MemoryKind::kLinear, kGranuleBytes, base);
  if (result != CUDA_SUCCESS) return result;
  context.small_blocks.push_back({base, FreeRanges(base, kGranuleBytes), 0, nullptr});
  const auto at = context.small_blocks.back().free.take(bytes, kAlignment);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  address = *at;
  return CUDA_SUCCESS;
}

void give_to_small_block(Context& context, std::uint64_t address, std::uint64_t bytes) {
  Memory& memory = library().memory();
  const auto block = std::ranges::find_if(context.small_blocks, [&](const SmallBlock& candidate) {
    return address - candidate.base < kGranuleBytes;
  });
  if (block == context.small_blocks.end()) return;
  block->free.give(address, bytes);
  if (!block->free.is_whole(block->base, kGranuleBytes)) return;
  memory.unreserve(block->base, kGranuleBytes);
  if (block->block != 0) {
    library().ask(Op::kBlockRelease, BlockId{block->block});
  } else {
    memory.arena()->punch(memory.arena_offset(block->base), kGranuleBytes);
    discharge(*context.device, MemoryKind::kLinear, kGranuleBytes);
  }
  context.small_blocks.erase(block);
}

}  // namespace

MemoryKind charge_kind(AllocationKind kind) {
  switch (kind) {
    case AllocationKind::kManaged:
      return MemoryKind::kManaged;
    case AllocationKind::kPool:
      return MemoryKind::kPool;
    case AllocationKind::kArray:
      return MemoryKind::kArray;
    case AllocationKind::kVmm:
      return MemoryKind::kVmm;
    case AllocationKind::kGraph:
      return MemoryKind::kGraph;
    default:
      return MemoryKind::kLinear;
  }
}

SmallBlock* small_block_of(Context& context, std::uint64_t address) {
  for (SmallBlock& block : context.small_blocks) {
    if (address - block.base < kGranuleBytes) return &block;
  }
  return nullptr;
}

CUresult allocate_granules(MemoryKind kind, std::uint64_t bytes, Allocation allocation,
                           std::uint64_t& address) {
  if (bytes > kArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t charged = round_up(bytes, kGranuleBytes);
  const CUresult result = take_granules(*allocation.device, kind, charged, address);
  if (result == CUDA_SUCCESS) add_granules(std::move(allocation), address, bytes, charged);
  return result;
}

CUresult pitch_of(std::uint64_t width_in_bytes, std::uint64_t height, unsigned element_bytes,
                  std::uint64_t& pitch) {
  const bool sized = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (width_in_bytes == 0 || height == 0 || !sized) return CUDA_ERROR_INVALID_VALUE;
  if (width_in_bytes > kArenaBytes || height > kArenaBytes / width_in_bytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pitch = round_up(width_in_bytes, kPitchAlignment);
  return CUDA_SUCCESS;
}

CUresult allocate_low(Context& context, std::uint64_t bytes, std::uint64_t& address) {
  Allocation allocation;
  allocation.context = &context;
  allocation.device = context.device;
  const std::uint64_t charged = round_up(bytes, kGranuleBytes);
  address = library().memory().reserve_low(charged, kGranuleBytes);
  const CUresult result = charge_granules(*context.device, MemoryKind::kLinear, charged, address);
  if (result == CUDA_SUCCESS) add_granules(std::move(allocation), address, bytes, charged);
  return result;
}

CUresult allocate_linear(Context& context, std::uint64_t bytes, std::uint64_t& address) {
  Allocation allocation;
  allocation.kind = AllocationKind::kLinear;
  allocation.context = &context;
  allocation.device = context.device;
  if (bytes >= kSmallBytes) {
    return allocate_granules(MemoryKind::kLinear, bytes, std::move(allocation), address);
  }
  const CUresult result = take_from_small_block(context, round_up(bytes, kAlignment), address);
  if (result != CUDA_SUCCESS) return result;
  Memory& memory = library().memory();
  allocation.base = address;
  allocation.bytes = bytes;
  allocation.file = memory.arena();
  allocation.file_offset = memory.arena_offset(address);
  if (const SmallBlock* block = small_block_of(context, address); block->file != nullptr) {
    allocation.file = block->file;
    allocation.file_offset = address - block->base;
  }
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
  return CUDA_SUCCESS;
}

CUresult allocate_managed(Context& context, std::uint64_t bytes, std::uint64_t& address) {
  if (bytes > kArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Memory& memory = library().memory();
  const std::uint64_t whole = round_up(bytes, kGranuleBytes);
  address = memory.reserve(whole, kGranuleBytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  UniqueFd file(memfd_create("aliquot-sim-managed", MFD_CLOEXEC));
  const bool sized = file && ftruncate(file.get(), static_cast<off_t>(whole)) == 0;
  if (!sized || mmap(reinterpret_cast<void*>(address), whole, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, file.get(), 0) == MAP_FAILED) {
    memory.unreserve(address, whole);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Allocation allocation;
  allocation.base = address;
  allocation.bytes = bytes;
  allocation.kind = AllocationKind::kManaged;
  allocation.context = &context;
  allocation.device = context.device;
  // Managed memory may pass what the device has: what does not fit stays with the host.
  const bool resident = charge(*context.device, MemoryKind::kManaged, whole) == CUDA_SUCCESS;
  allocation.charged_bytes = resident ? whole : 0;
  allocation.file =
      std::make_shared<MemoryFile>(std::move(file), MemoryFile::Sharing::kShared, memory.commit());
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
  return CUDA_SUCCESS;
}

void free_allocation(Allocation& allocation) {
  Memory& memory = library().memory();
  const std::uint64_t base = allocation.base;
  const std::uint64_t whole = round_up(allocation.bytes, kGranuleBytes);
  if (allocation.kind == AllocationKind::kManaged) {
    // Back to an address that faults.
    if (mmap(reinterpret_cast<void*>(base), whole, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
      say(Say::kAlways, "freed managed memory stays mapped: %s", std::strerror(errno));
    discharge(*allocation.device, MemoryKind::kManaged, allocation.charged_bytes);
    memory.unreserve(base, whole);
  } else if (allocation.block != 0) {
    library().ask(Op::kBlockRelease, BlockId{allocation.block});
    memory.unreserve(base, whole);
  } else if (allocation.charged_bytes != 0) {
    memory.arena()->punch(allocation.file_offset, whole);
    if (allocation.kind != AllocationKind::kGraph) memory.unreserve(base, whole);
    discharge(*allocation.device, charge_kind(allocation.kind), allocation.charged_bytes);
  } else {
    give_to_small_block(*allocation.context, base, round_up(allocation.bytes, kAlignment));
  }
  memory.remove(base);
}

void end_graph_launch(Allocation& allocation) {
  if (--allocation.graph_launches == 0) free_allocation(allocation);
}

void free_memory_of(Context& context) {
  Memory& memory = library().memory();
  std::vector<std::uint64_t> mine;
  for (const auto& [base, allocation] : memory.all()) {
    if (allocation.context == &context) mine.push_back(base);
  }
  for (const std::uint64_t base : mine) {
    if (Allocation* allocation = memory.find(base)) free_allocation(*allocation);
  }
  std::vector<std::uintptr_t> host;
  for (const auto& [at, range] : memory.host_ranges()) {
    if (range.context == &context) host.push_back(at);
  }
  for (const std::uintptr_t at : host) {
    const HostRange range = memory.host_ranges()[at];
    if (!range.registered) munmap(range.base, range.bytes);
    memory.host_ranges().erase(at);
  }
}

}  // namespace aliquot::simdriver
