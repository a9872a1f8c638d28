// Holdings: what this process holds of the share, and what goes with a context that ends.
//
// One set of tables for the process: device pointers, objects (arrays, modules, imported memory),
// contexts. Guards put an entry in after the driver has given, and take it out before the driver
// frees. Any thread; no lock is held over a driver call.
#pragma once

#include <cstdint>

#include "interposer/account.h"
#include "interposer/held_table.h"

namespace aliquot::interposer {

HeldTable& held_pointers();
HeldTable& held_objects();
HeldTable& held_contexts();

inline std::uint64_t name_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

// Writes a granted reservation down under `name`. False: no memory to remember it; the caller then
// gives the allocation back to the driver.
[[nodiscard]] bool keep(HeldTable& table, Reservation& reservation, wire::Kind kind,
                        std::uint64_t name, std::uint64_t context);
// An entry that was taken out has been freed for good. What came from a pool stays charged to the
// pool (pools.h).
void let_go(const Held& entry);
// The driver refused to free it: it is still held.
void put_back(HeldTable& table, const Held& entry);

// A context has ended: the driver has freed what was made in it.
void let_go_of_context(std::uint64_t context);

// In the child of a fork: all of it is the parent's.
void forget_holdings();

}  // namespace aliquot::interposer
