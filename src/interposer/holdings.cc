#include "interposer/holdings.h"

namespace aliquot::interposer {
constinit HeldTable process_pointers, process_objects, process_contexts, process_graphs;

namespace {

Held entry_of(std::uint64_t name, std::uint64_t context, std::uint64_t bytes, wire::Kind kind,
              unsigned gpu) {
  return {name, context, bytes, static_cast<std::uint32_t>(kind), gpu};
}

// Apart, so that the common case keeps everything in registers.
[[gnu::noinline]] bool remember_in_any_case(HeldTable& table, std::uint64_t name,
                                            std::uint64_t context, std::uint64_t bytes,
                                            wire::Kind kind, unsigned gpu) {
  Held freed_unseen;
  if (!table.insert(entry_of(name, context, bytes, kind, gpu), &freed_unseen)) return false;
  if (freed_unseen.name != 0) let_go(freed_unseen);
  return true;
}

bool is_of(const Held& entry, std::uint64_t context) { return entry.owner == context; }

}  // namespace

bool remember(HeldTable& table, std::uint64_t name, std::uint64_t context, std::uint64_t bytes,
              wire::Kind kind, unsigned gpu) {
  return table.insert_at_once(entry_of(name, context, bytes, kind, gpu)) ||
         remember_in_any_case(table, name, context, bytes, kind, gpu);
}

void put_back(HeldTable& table, const Held& entry) {
  Held replaced;
  if (entry.name != 0 && table.insert(entry, &replaced)) let_go(replaced);
}

void let_go_of_context(std::uint64_t context) {
  if (context == 0) return;
  for (HeldTable* table : {&process_pointers, &process_objects})
    for (Held entry = table->take_any(is_of, context); entry.name != 0;
         entry = table->take_any(is_of, context))
      let_go(entry);
}

void forget_holdings() {
  process_pointers.forget_all();
  process_objects.forget_all();
  process_contexts.forget_all();
  process_graphs.forget_all();
}

}  // namespace aliquot::interposer
