// Physical memory by handle (cuMemCreate) and the address ranges it is mapped into. A handle lives
// while it is referred to or mapped. Under the library's lock.
#pragma once

#include <map>
#include <memory>

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

struct PhysicalMemory {
  CUmemAllocationProp properties{};
  DeviceView* device = nullptr;  // nullptr: the host's
  std::uint64_t bytes = 0;
  std::uint64_t block = 0;  // the server's, when others can be given it
  std::shared_ptr<MemoryFile> file;
  std::uint64_t file_offset = 0;
  std::uint64_t storage = 0;  // place in the arena, when it is this process's alone
  unsigned references = 1;
  unsigned mappings = 0;
};

Registry<PhysicalMemory>& physical_memories();
PhysicalMemory* find_physical(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle handle_of(PhysicalMemory* memory);
CUresult create_physical(const CUmemAllocationProp& properties, std::uint64_t bytes,
                         PhysicalMemory*& made);
// Frees the memory when nothing refers to it any more.
void drop_if_unused(PhysicalMemory& memory);

// A descriptor that keeps the server's block until its last copy is closed, as an int.
CUresult export_block(std::uint64_t block, void* descriptor);

// Address ranges of cuMemAddressReserve.
std::map<std::uint64_t, std::uint64_t>& reservations();

// Maps `memory` at an address within a reservation.
CUresult map_physical(PhysicalMemory& memory, std::uint64_t address, std::uint64_t bytes,
                      std::uint64_t offset);
CUresult unmap_range(std::uint64_t address, std::uint64_t bytes);

}  // namespace aliquot::simdriver
