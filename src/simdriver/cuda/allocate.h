// Taking and giving back device memory: charged by the server in granules, cut up here. Under the
// library's lock.
#pragma once

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

// `bytes` > 0. Small requests share 2 MiB blocks; each starts at a multiple of 512.
CUresult allocate_linear(Context& context, std::uint64_t bytes, std::uint64_t& address);
// At an address of 32 bits: whole granules.
CUresult allocate_low(Context& context, std::uint64_t bytes, std::uint64_t& address);
// Bytes from row to row of pitched memory.
CUresult pitch_of(std::uint64_t width_in_bytes, std::uint64_t height, unsigned element_bytes,
                  std::uint64_t& pitch);
// Whole granules of their own, of any kind; `allocation` names kind, context, device, pool.
CUresult allocate_granules(MemoryKind kind, std::uint64_t bytes, Allocation allocation,
                           std::uint64_t& address);
// Mapped at its address, so that the host can use it. Charged where it fits.
CUresult allocate_managed(Context& context, std::uint64_t bytes, std::uint64_t& address);
// Of any kind but those of pools and mappings; the charge goes back.
void free_allocation(Allocation& allocation);
// The same where a stream has come to the free: a later launch of a graph may hold it still.
void end_graph_launch(Allocation& allocation);
// What a context leaves behind.
void free_memory_of(Context& context);

// The block of 2 MiB that a small allocation lies in; nullptr: it is not a small one.
SmallBlock* small_block_of(Context& context, std::uint64_t address);

MemoryKind charge_kind(AllocationKind kind);

}  // namespace aliquot::simdriver
