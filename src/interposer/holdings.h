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

extern constinit HeldTable process_pointers, process_objects;  // NOLINT: the process's own
extern constinit HeldTable process_contexts, process_graphs;   // NOLINT: the same
inline HeldTable& held_pointers() { return process_pointers; }
inline HeldTable& held_objects() { return process_objects; }
inline HeldTable& held_contexts() { return process_contexts; }
// Instantiated graphs: owner is a number that no other graph had, bytes the time it is taken to
// last.
inline HeldTable& held_graphs() { return process_graphs; }

inline std::uint64_t name_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

// Writes a granted reservation down under `name`. False: no memory to remember it; the caller then
// gives the allocation back to the driver.
[[nodiscard]] bool remember(HeldTable& table, std::uint64_t name, std::uint64_t context,
                            std::uint64_t bytes, wire::Kind kind, unsigned gpu);
[[nodiscard]] inline bool keep(HeldTable& table, Reservation& reservation, std::uint64_t name,
                               std::uint64_t context) {
  if (!remember(table, name, context, reservation.bytes(), reservation.kind(), reservation.gpu()))
    return false;
  reservation.commit();
  return true;
}
// An entry that was taken out has been freed for good. What came from a pool stays charged to the
// pool (pools.h). No entry: nothing happens.
inline void let_go(const Held& entry) {
  const auto kind = static_cast<wire::Kind>(entry.kind);
  if (kind != wire::Kind::kPool) give_back(entry.gpu, kind, entry.bytes);
}
// The driver refused to free it: it is still held.
void put_back(HeldTable& table, const Held& entry);

// A context has ended: the driver has freed what was made in it.
void let_go_of_context(std::uint64_t context);

// In the child of a fork: all of it is the parent's.
void forget_holdings();

}  // namespace aliquot::interposer
