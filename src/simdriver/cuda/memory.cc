#include "simdriver/cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace aliquot::simdriver {

namespace {

// Where the process has few addresses left (a limit on them, a sanitizer's shadow) the window is
// smaller: half as often as need be, down to this.
constexpr std::uint64_t kSmallestWindowBytes = 64ull << 30;
// The same of the low one; a program that was not made to be moved lies there too.
constexpr std::uint64_t kLowWindowBytes = 1ull << 30;
constexpr std::uint64_t kSmallestLowWindowBytes = 64ull << 20;

// Room for a window that starts at a granule; 0: none.
std::uint64_t map_window(std::uint64_t bytes, int flags) {
  void* at = mmap(nullptr, bytes + kGranuleBytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (at == MAP_FAILED) return 0;
  madvise(at, bytes + kGranuleBytes, MADV_DONTDUMP);
  return (reinterpret_cast<std::uintptr_t>(at) + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
}

}  // namespace

Memory::Memory(std::uint64_t base, std::uint64_t window_bytes, UniqueFd arena, Commit commit)
    : window_{base, window_bytes, 0, FreeRanges(base, window_bytes)},
      commit_(std::move(commit)),
      arena_(
          std::make_shared<MemoryFile>(std::move(arena), MemoryFile::Sharing::kPrivate, commit_)) {}

std::unique_ptr<Memory> Memory::make(UniqueFd arena, Commit commit) {
  for (std::uint64_t window = kArenaBytes; window >= kSmallestWindowBytes; window /= 2) {
    const std::uint64_t base = map_window(window, 0);
    if (base == 0) continue;
    return std::unique_ptr<Memory>(new Memory(base, window, std::move(arena), std::move(commit)));
  }
  return nullptr;
}

// Its part of the arena is that of addresses in the large window, which nobody gets any more.
void Memory::open_low_window() {
  for (std::uint64_t bytes = kLowWindowBytes; bytes >= kSmallestLowWindowBytes; bytes /= 2) {
    const std::uint64_t base = map_window(bytes, MAP_32BIT);
    if (base == 0) continue;
    const std::uint64_t instead = reserve(bytes, kGranuleBytes);
    if (instead != 0) low_ = {base, bytes, arena_offset(instead), FreeRanges(base, bytes)};
    return;
  }
}

Memory::~Memory() = default;

std::uint64_t Memory::reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t at) {
  if (bytes > window_.bytes) return 0;
  if (at != 0 && is_device_address(at) && window_of(at).free.take_at(at, bytes)) return at;
  return window_.free.take(bytes, align).value_or(0);
}

std::uint64_t Memory::reserve_low(std::uint64_t bytes, std::uint64_t align) {
  if (low_.bytes == 0) open_low_window();
  return bytes > low_.bytes ? 0 : low_.free.take(bytes, align).value_or(0);
}

void Memory::unreserve(std::uint64_t base, std::uint64_t bytes) {
  window_of(base).free.give(base, bytes);
}

Allocation& Memory::add(Allocation allocation) {
  const std::uint64_t base = allocation.base;
  return allocations_[base] = std::move(allocation);
}

Allocation* Memory::find(std::uint64_t address) {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  Allocation& candidate = std::prev(next)->second;
  return address - candidate.base < candidate.bytes ? &candidate : nullptr;
}

void Memory::remove(std::uint64_t base) { allocations_.erase(base); }

// Calls visit(allocation, offset in its file, bytes) for each piece, in order.
template <typename Visit>
CUresult Memory::walk(std::uint64_t address, std::uint64_t bytes, Visit visit) {
  while (bytes > 0) {
    Allocation* allocation = find(address);
    if (allocation == nullptr || !allocation->accessible) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t inside = address - allocation->base;
    const std::uint64_t part = std::min(bytes, allocation->bytes - inside);
    if (!visit(*allocation, allocation->file_offset + inside, part)) {
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    address += part;
    bytes -= part;
  }
  return CUDA_SUCCESS;
}

bool Memory::covers(std::uint64_t address, std::uint64_t bytes) {
  const auto next = promised_.upper_bound(address);
  if (next != promised_.begin()) {
    const auto& [base, size] = *std::prev(next);
    if (address - base < size && bytes <= size - (address - base)) return true;
  }
  return walk(address, bytes, [](Allocation&, std::uint64_t, std::uint64_t) { return true; }) ==
         CUDA_SUCCESS;
}

CUresult Memory::load(void* to, std::uint64_t from, std::uint64_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  return walk(from, bytes, [&](Allocation& at, std::uint64_t offset, std::uint64_t part) {
    const bool ok = at.file->read(offset, out, part);
    out += part;
    return ok;
  });
}

CUresult Memory::store(std::uint64_t to, const void* from, std::uint64_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  return walk(to, bytes, [&](Allocation& at, std::uint64_t offset, std::uint64_t part) {
    const bool ok = at.file->write(offset, in, part);
    in += part;
    return ok;
  });
}

CUresult Memory::fill(std::uint64_t to, std::uint64_t bytes, Pattern pattern) {
  return walk(to, bytes, [&](Allocation& at, std::uint64_t offset, std::uint64_t part) {
    return at.file->fill(offset, part, pattern);
  });
}

HostRange* Memory::find_host(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto next = host_ranges_.upper_bound(at);
  if (next == host_ranges_.begin()) return nullptr;
  HostRange& candidate = std::prev(next)->second;
  return at - reinterpret_cast<std::uintptr_t>(candidate.base) < candidate.bytes ? &candidate
                                                                                 : nullptr;
}

}  // namespace aliquot::simdriver
