#include "simdriver/cuda/physical.h"

#include <fcntl.h>

#include <cstring>
#include <vector>

namespace aliquot::simdriver {
namespace {

CUresult take_block(PhysicalMemory& memory) {
  Answer answer;
  const CUresult result =
      library().ask(Op::kBlockCreate,
                    MemoryRequest{memory.device->server, MemoryKind::kVmm, memory.bytes}, &answer);
  if (result != CUDA_SUCCESS) return result;
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  memory.block = reply->key.block;
  memory.file = std::make_shared<MemoryFile>(std::move(answer.fds[0]), MemoryFile::Sharing::kShared,
                                             library().memory().commit());
  return CUDA_SUCCESS;
}

// Behind addresses of the arena that nobody else is given.
CUresult take_storage(PhysicalMemory& memory) {
  Memory& all = library().memory();
  memory.storage = all.reserve(memory.bytes, kGranuleBytes);
  if (memory.storage == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  if (memory.device != nullptr) {
    result = library().ask(Op::kMemoryTake,
                           MemoryRequest{memory.device->server, MemoryKind::kVmm, memory.bytes});
  }
  if (result != CUDA_SUCCESS) {
    all.unreserve(memory.storage, memory.bytes);
    return result;
  }
  memory.file = all.arena();
  memory.file_offset = all.arena_offset(memory.storage);
  return CUDA_SUCCESS;
}

}  // namespace

Registry<PhysicalMemory>& physical_memories() {
  static auto* const all = new Registry<PhysicalMemory>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

PhysicalMemory* find_physical(CUmemGenericAllocationHandle handle) {
  const auto* name = reinterpret_cast<const void*>(handle);
  return physical_memories().find(name);
}

CUmemGenericAllocationHandle handle_of(PhysicalMemory* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

CUresult create_physical(const CUmemAllocationProp& properties, std::uint64_t bytes,
                         PhysicalMemory*& made) {
  auto memory = std::make_unique<PhysicalMemory>();
  memory->properties = properties;
  memory->bytes = bytes;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    memory->device = library().device(properties.location.id);
  }
  const bool exportable = properties.requested_handle_types != 0 && memory->device != nullptr;
  const CUresult result = exportable ? take_block(*memory) : take_storage(*memory);
  if (result == CUDA_SUCCESS) made = physical_memories().add(std::move(memory));
  return result;
}

void drop_if_unused(PhysicalMemory& memory) {
  if (memory.references != 0 || memory.mappings != 0) return;
  Memory& all = library().memory();
  if (memory.block != 0) {
    library().ask(Op::kBlockRelease, BlockId{memory.block});
  } else {
    all.arena()->punch(memory.file_offset, memory.bytes);
    all.unreserve(memory.storage, memory.bytes);
    if (memory.device != nullptr) {
      library().ask(Op::kMemoryGive,
                    MemoryRequest{memory.device->server, MemoryKind::kVmm, memory.bytes});
    }
  }
  physical_memories().remove(&memory);
}

CUresult export_block(std::uint64_t block, void* descriptor) {
  Answer answer;
  if (const CUresult result = library().ask(Op::kBlockExport, BlockId{block}, &answer)) {
    return result;
  }
  if (answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  // Never one of the first three, which a program may have closed.
  const int fd = fcntl(answer.fds[0].get(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(descriptor, &fd, sizeof(fd));
  return CUDA_SUCCESS;
}

std::map<std::uint64_t, std::uint64_t>& reservations() {
  static auto* const all = new std::map<std::uint64_t, std::uint64_t>;  // NOLINT: lives for ever
  return *all;
}

CUresult map_physical(PhysicalMemory& memory, std::uint64_t address, std::uint64_t bytes,
                      std::uint64_t offset) {
  auto next = reservations().upper_bound(address);
  if (next == reservations().begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [base, size] = *std::prev(next);
  if (address + bytes > base + size || offset > memory.bytes || bytes > memory.bytes - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Memory& all = library().memory();
  const auto after = all.all().lower_bound(address);
  const bool taken =
      all.find(address) != nullptr || (after != all.all().end() && after->first < address + bytes);
  if (taken) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  allocation.base = address;
  allocation.bytes = bytes;
  allocation.kind = AllocationKind::kVmm;
  allocation.device = memory.device;
  allocation.file = memory.file;
  allocation.file_offset = memory.file_offset + offset;
  allocation.accessible = false;
  allocation.handle = handle_of(&memory);
  allocation.block = memory.block;
  allocation.id = library().next_id();
  all.add(std::move(allocation));
  ++memory.mappings;
  return CUDA_SUCCESS;
}

CUresult unmap_range(std::uint64_t address, std::uint64_t bytes) {
  Memory& all = library().memory();
  std::vector<std::uint64_t> inside;
  std::uint64_t at = address;
  while (at < address + bytes) {
    const Allocation* mapping = all.find(at);
    const bool whole = mapping != nullptr && mapping->kind == AllocationKind::kVmm &&
                       mapping->base == at && at + mapping->bytes <= address + bytes;
    if (!whole) return CUDA_ERROR_INVALID_VALUE;
    inside.push_back(at);
    at += mapping->bytes;
  }
  for (const std::uint64_t base : inside) {
    PhysicalMemory* memory = find_physical(all.find(base)->handle);
    all.remove(base);
    if (memory == nullptr) continue;
    --memory->mappings;
    drop_if_unused(*memory);
  }
  return CUDA_SUCCESS;
}

}  // namespace aliquot::simdriver
