// Physical memory of cuMemCreate: who still needs it.
//
// The driver keeps an allocation until its last handle is released *and* its last use is gone: a
// mapping at an address, a place in a multicast object, a part of a sparse array. Its charge ends
// exactly then; releasing the handle of mapped memory un-charges nothing. A use is counted before
// the driver is asked for it, and a reference is dropped before the driver drops it, so that a
// handle or an address that comes back at once belongs to the new owner.
//
// Any thread; one lock for all of it, never held over a driver call.
#pragma once

#include <cstdint>

#include "interposer/account.h"

namespace aliquot::interposer::physical {

using Handle = std::uint64_t;
// Names what a pin belongs to: an array, or a multicast object by its handle.
using Owner = std::uint64_t;
inline constexpr std::uint64_t kEverywhere = ~0ull;

// Writes a new allocation down under its handle. False: no memory for it.
[[nodiscard]] bool add(Reservation& reservation, Handle handle);

// An allocation that a call is about, from before the driver is asked until it has answered: it
// cannot end meanwhile, and its handle may already be somebody else's.
using Allocation = std::uint32_t;

// The handle was exported. Who imports it, here or in another process, keeps the memory, and no
// call of ours sees when the last one lets go: it stays charged until this process ends.
void exported(Handle handle);

// Around the driver's release of a handle.
[[nodiscard]] Allocation release_begins(Handle handle);
void release_failed(Allocation allocation, Handle handle);
void release_done(Allocation allocation);

// A handle that the driver gave out for what is mapped at `address`.
void retained(Handle handle, std::uint64_t address);

// Around the driver's mapping. Unknown handles (host memory, imports) are nobody's charge.
[[nodiscard]] Allocation map_begins(Handle handle);
void map_failed(Allocation allocation);
[[nodiscard]] bool map_done(Allocation allocation, std::uint64_t address, std::uint64_t bytes);
// Which mappings there are now; an unmapping ends those that it found, not later ones.
std::uint64_t mappings_until_now();
void unmapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t until);

// Keeps memory for an owner: by handle, or by an address at which it is mapped.
[[nodiscard]] bool pin(Handle handle, Owner owner, std::uint64_t offset);
[[nodiscard]] bool pin_mapped(std::uint64_t address, Owner owner, std::uint64_t offset);
// Ends the owner's pins in a range of its own offsets; of one GPU, or of all with kNoGpu.
void unpin(Owner owner, std::uint64_t offset, std::uint64_t bytes, unsigned gpu);

void forget();

}  // namespace aliquot::interposer::physical
