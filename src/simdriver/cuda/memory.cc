#include "simdriver/cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace aliquot::simdriver {

namespace {

// Where the process has few addresses left (a limit on them, a sanitizer's shadow) the window is
// smaller: half as often as need be, down to this.
constexpr std::uint64_t kSmallestWindowBytes = 64ull << 30;

}  // namespace

Memory::Memory(std::uint64_t base, std::uint64_t window_bytes, UniqueFd arena, Commit commit)
    : base_(base),
      window_bytes_(window_bytes),
      commit_(std::move(commit)),
      arena_(
          std::make_shared<MemoryFile>(std::move(arena), MemoryFile::Sharing::kPrivate, commit_)),
      free_(base, window_bytes) {}

std::unique_ptr<Memory> Memory::make(UniqueFd arena, Commit commit) {
  for (std::uint64_t window = kArenaBytes; window >= kSmallestWindowBytes; window /= 2) {
    // 2 MiB more than needed, so that the window can start at a granule.
    void* at = mmap(nullptr, window + kGranuleBytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    madvise(at, window + kGranuleBytes, MADV_DONTDUMP);
    const auto start = reinterpret_cast<std::uintptr_t>(at);
    const std::uint64_t base = (start + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
    return std::unique_ptr<Memory>(new Memory(base, window, std::move(arena), std::move(commit)));
  }
  return nullptr;
}

Memory::~Memory() = default;

std::uint64_t Memory::reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t at) {
  if (bytes > window_bytes_) return 0;
  if (at != 0 && is_device_address(at) && free_.take_at(at, bytes)) return at;
  return free_.take(bytes, align).value_or(0);
}

void Memory::unreserve(std::uint64_t base, std::uint64_t bytes) { free_.give(base, bytes); }

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
