#include "interposer/holdings.h"

namespace aliquot::interposer {
namespace {

constinit HeldTable pointers;
constinit HeldTable objects;
constinit HeldTable contexts;

bool is_of(const Held& entry, std::uint64_t context) { return entry.owner == context; }

}  // namespace

HeldTable& held_pointers() { return pointers; }
HeldTable& held_objects() { return objects; }
HeldTable& held_contexts() { return contexts; }

bool keep(HeldTable& table, Reservation& reservation, wire::Kind kind, std::uint64_t name,
          std::uint64_t context) {
  const Held entry{name, context, reservation.bytes(), static_cast<std::uint64_t>(kind),
                   reservation.gpu()};
  Held freed_unseen;
  if (!table.insert(entry, &freed_unseen)) return false;
  reservation.commit();
  if (freed_unseen.name != 0) let_go(freed_unseen);
  return true;
}

void let_go(const Held& entry) {
  const auto kind = static_cast<wire::Kind>(entry.kind);
  if (entry.name != 0 && kind != wire::Kind::kPool)
    give_back(static_cast<unsigned>(entry.gpu), kind, entry.bytes);
}

void put_back(HeldTable& table, const Held& entry) {
  Held replaced;
  if (entry.name != 0 && table.insert(entry, &replaced)) let_go(replaced);
}

void let_go_of_context(std::uint64_t context) {
  if (context == 0) return;
  for (HeldTable* table : {&pointers, &objects})
    for (Held entry = table->take_any(is_of, context); entry.name != 0;
         entry = table->take_any(is_of, context))
      let_go(entry);
}

void forget_holdings() {
  pointers.forget_all();
  objects.forget_all();
  contexts.forget_all();
}

}  // namespace aliquot::interposer
