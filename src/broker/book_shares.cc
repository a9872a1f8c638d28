// Changing the share of a lease that lives: memory and compute, both or neither.
#include <algorithm>

#include "broker/book.h"

namespace aliquot::broker {
namespace {

bool asks_for_compute(const ComputeChange& change) {
  return change.cores || change.weight || change.priority || change.share_class || change.capped;
}

}  // namespace

Result<std::vector<unsigned>> Book::gpus_named(const Lease& lease, const std::string& gpu) {
  std::vector<unsigned> named;
  std::string has;
  for (unsigned i = 0; i < lease.gpus(); ++i) {
    const std::string index = std::to_string(lease.gpu_index(i));
    if (gpu.empty() || gpu == lease.uuid(i) || gpu == index) named.push_back(i);
    has += (i == 0 ? "" : ", ") + index;
  }
  if (!named.empty()) return named;
  return Error{Errc::kNotFound, "set the share of lease " + lease.name() + ": it has no GPU " +
                                    gpu + " of the machine; it has " + has};
}

// One GPU of a lease, and what was found to fit there.
struct Book::FittingChange {
  unsigned gpu = 0;  // within the lease
  std::optional<std::uint64_t> limit_bytes;
  std::optional<gate::TenantTerms> terms;
};

Result<Book::FittingChange> Book::fitting(const Lease& lease, unsigned gpu,
                                          const ShareChange& change,
                                          const std::vector<RoomRow>& rooms) const {
  FittingChange fits;
  fits.gpu = gpu;
  if (change.memory) {
    const auto row = std::ranges::find(rooms, lease.uuid(gpu), &RoomRow::uuid);
    if (row == rooms.end())
      return Error{Errc::kNotFound, "set the share of lease " + lease.name() + ": GPU " +
                                        lease.uuid(gpu) + " is not on the machine any more"};
    fits.limit_bytes = change.memory->bytes_of(row->total_bytes);
    if (const Status room = admit_change(*row, lease.limit_bytes(gpu), *fits.limit_bytes); !room)
      return room.error();
  }
  if (asks_for_compute(change.compute)) {
    const auto terms = changed_terms(lease, gpu, change.compute);
    if (!terms) return terms.error();
    fits.terms = *terms;
  }
  return fits;
}

Result<std::vector<Book::FittingChange>> Book::all_fitting(
    const Lease& lease, const std::vector<ShareChange>& changes) {
  std::vector<RoomRow> rooms;
  if (std::ranges::any_of(changes, [](const ShareChange& c) { return c.memory.has_value(); })) {
    auto measured = room(lease.driver());
    if (!measured) return measured.error();
    rooms = *std::move(measured);
  }
  std::vector<FittingChange> all;
  for (const ShareChange& change : changes) {
    if (change.compute.lease != lease.name())
      return Error{Errc::kInvalid, "set the share of lease " + lease.name() + ": lease " +
                                       change.compute.lease + " is to be changed by itself"};
    const auto named = gpus_named(lease, change.compute.gpu);
    if (!named) return named.error();
    for (const unsigned gpu : *named) {
      auto fits = fitting(lease, gpu, change, rooms);
      if (!fits) return fits.error();
      all.push_back(*std::move(fits));
    }
  }
  return all;
}

Status Book::set_shares(const std::vector<ShareChange>& changes) {
  if (changes.empty()) return {};
  const std::string& name = changes.front().compute.lease;
  const auto at = find(name);
  if (!at) return at.error();
  Lease& lease = *(*at)->second.lease;
  if (lease.state() != wire::LeaseState::kLive)
    return Error{Errc::kInvalid, "set the share of lease " + name +
                                     ": nothing is granted in it any more; start a new lease"};
  const auto all = all_fitting(lease, changes);
  if (!all) return all.error();
  // From here on nothing is refused; a scribbled ledger is told of when all is in the grant.
  Status in_force;
  for (const FittingChange& change : *all) {
    if (change.terms) set_terms(lease, change.gpu, *change.terms);
    if (!change.limit_bytes) continue;
    if (const Status set = lease.set_limit(change.gpu, *change.limit_bytes); !set) in_force = set;
  }
  ++changes_;
  return in_force;
}

}  // namespace aliquot::broker
