#include "interposer/physical_memory.h"

#include <algorithm>

#include "interposer/mapped_array.h"

namespace aliquot::interposer::physical {
namespace {

using wire::Kind;

struct Record {
  std::uint64_t bytes;
  unsigned gpu;
  unsigned handles;  // references that release drops
  unsigned uses;     // mappings and pins, those under way included
  bool live;
};
struct Named {  // sorted by handle
  Handle handle;
  Allocation allocation;
};
struct Mapping {  // sorted by address
  std::uint64_t address, bytes, number;
  Allocation allocation;
};
struct Pin {
  Owner owner;
  std::uint64_t offset;
  Allocation allocation;
};
constexpr Allocation kNone = ~0u;

constinit ShortLock lock;
constinit MappedArray<Record> records;
constinit MappedArray<Named> names;
constinit MappedArray<Mapping> mappings;
constinit MappedArray<Pin> pins;
constinit std::uint64_t mapping_number = 0;

std::size_t place_of(Handle handle) {
  return static_cast<std::size_t>(
      std::lower_bound(names.begin(), names.end(), handle,
                       [](const Named& named, Handle wanted) { return named.handle < wanted; }) -
      names.begin());
}
Allocation find(Handle handle) {
  const std::size_t at = place_of(handle);
  return at < names.size() && names[at].handle == handle ? names[at].allocation : kNone;
}
std::size_t first_mapping_from(std::uint64_t address) {
  return static_cast<std::size_t>(
      std::lower_bound(
          mappings.begin(), mappings.end(), address,
          [](const Mapping& mapping, std::uint64_t wanted) { return mapping.address < wanted; }) -
      mappings.begin());
}
Allocation mapped_at(std::uint64_t address) {
  std::size_t at = first_mapping_from(address);
  if (at < mappings.size() && mappings[at].address == address) return mappings[at].allocation;
  if (at == 0) return kNone;
  const Mapping& before = mappings[at - 1];
  return address - before.address < before.bytes ? before.allocation : kNone;
}

// What to give back once the lock is released.
struct Freed {
  unsigned gpu = kNoGpu;
  std::uint64_t bytes = 0;
  ~Freed() { give_back(gpu, Kind::kVmm, bytes); }
};
void free_if_unneeded(Allocation at, Freed& freed) {
  Record& record = records[at];
  if (!record.live || record.handles != 0 || record.uses != 0) return;
  freed.gpu = record.gpu;
  freed.bytes = record.bytes;
  record.live = false;
}
void end_use(Allocation at, Freed& freed) {
  --records[at].uses;
  free_if_unneeded(at, freed);
}

Allocation new_record(const Record& record) {
  for (std::uint32_t i = 0; i < records.size(); ++i)
    if (!records[i].live) {
      records[i] = record;
      return i;
    }
  return records.append(record) ? static_cast<Allocation>(records.size() - 1) : kNone;
}

}  // namespace

bool add(Reservation& reservation, Handle handle) {
  const Holding holding(lock);
  const Allocation at = new_record({reservation.bytes(), reservation.gpu(), 1, 0, /*live=*/true});
  if (at == kNone) return false;
  const std::size_t place = place_of(handle);
  if (place < names.size() && names[place].handle == handle) {
    names[place].allocation = at;  // the old one ended past us; its uses still count
  } else if (!names.insert(place, {handle, at})) {
    records[at].live = false;
    return false;
  }
  reservation.commit();
  return true;
}

void exported(Handle handle) {
  const Holding holding(lock);
  const Allocation at = find(handle);
  if (at != kNone) ++records[at].uses;  // never ended
}

Allocation release_begins(Handle handle) {
  const Holding holding(lock);
  const Allocation at = find(handle);
  if (at == kNone) return kNone;
  ++records[at].uses;  // until the driver has answered
  if (records[at].handles != 0) --records[at].handles;
  if (records[at].handles == 0) names.take(place_of(handle));
  return at;
}
void release_failed(Allocation allocation, Handle handle) {
  if (allocation == kNone) return;
  Freed freed;
  const Holding holding(lock);
  if (find(handle) != kNone || names.insert(place_of(handle), {handle, allocation}))
    ++records[allocation].handles;
  end_use(allocation, freed);
}
void release_done(Allocation allocation) {
  if (allocation == kNone) return;
  Freed freed;
  const Holding holding(lock);
  end_use(allocation, freed);
}

void retained(Handle handle, std::uint64_t address) {
  const Holding holding(lock);
  const Allocation at = mapped_at(address);
  if (at == kNone) return;
  if (find(handle) == kNone && !names.insert(place_of(handle), {handle, at})) return;
  ++records[at].handles;
}

Allocation map_begins(Handle handle) {
  const Holding holding(lock);
  const Allocation at = find(handle);
  if (at != kNone) ++records[at].uses;
  return at;
}
void map_failed(Allocation allocation) { release_done(allocation); }
bool map_done(Allocation allocation, std::uint64_t address, std::uint64_t bytes) {
  if (allocation == kNone) return true;
  const Holding holding(lock);
  return mappings.insert(first_mapping_from(address),
                         {address, bytes, ++mapping_number, allocation});
}

std::uint64_t mappings_until_now() {
  const Holding holding(lock);
  return mapping_number;
}
void unmapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t until) {
  for (;;) {
    Freed freed;
    const Holding holding(lock);
    std::size_t at = first_mapping_from(address);
    while (at < mappings.size() && mappings[at].address - address < bytes &&
           mappings[at].number > until)
      ++at;
    if (at == mappings.size() || mappings[at].address - address >= bytes) return;
    end_use(mappings.take(at).allocation, freed);
  }
}

bool pin(Handle handle, Owner owner, std::uint64_t offset) {
  const Holding holding(lock);
  const Allocation at = find(handle);
  if (at == kNone) return true;
  if (!pins.append({owner, offset, at})) return false;
  ++records[at].uses;
  return true;
}
bool pin_mapped(std::uint64_t address, Owner owner, std::uint64_t offset) {
  const Holding holding(lock);
  const Allocation at = mapped_at(address);
  if (at == kNone) return true;
  if (!pins.append({owner, offset, at})) return false;
  ++records[at].uses;
  return true;
}
void unpin(Owner owner, std::uint64_t offset, std::uint64_t bytes, unsigned gpu) {
  for (;;) {
    Freed freed;
    const Holding holding(lock);
    const auto ends = [&](const Pin& pin) {
      return pin.owner == owner && pin.offset - offset < bytes &&
             (gpu == kNoGpu || records[pin.allocation].gpu == gpu);
    };
    Pin* found = std::find_if(pins.begin(), pins.end(), ends);
    if (found == pins.end()) return;
    end_use(pins.take(static_cast<std::size_t>(found - pins.begin())).allocation, freed);
  }
}

void forget() {
  lock.reset();
  records.forget_all();
  names.forget_all();
  mappings.forget_all();
  pins.forget_all();
}

}  // namespace aliquot::interposer::physical
