#include "broker/book.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "common/files.h"

namespace aliquot::broker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLeases = 1000;
// An exec is noticed within a second.
constexpr unsigned kRoundsToImages = 3;

Status check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 48 && name.front() != '.' &&
                    std::ranges::all_of(name, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error{Errc::kInvalid,
               "name a lease \"" + name +
                   "\": use 1 to 48 letters, digits, '-', '_', '.', not starting with '.'"};
}

Status check_request(const LeaseRequest& request) {
  if (request.slots < 1 || request.slots > wire::kMaxSlots)
    return Error{Errc::kInvalid, "create a lease: 1.." + std::to_string(wire::kMaxSlots) +
                                     " process slots, " + std::to_string(request.slots) +
                                     " were asked"};
  for (const std::string* path : {&request.real_libcuda, &request.real_libnvidia_ml})
    if (path->size() >= sizeof(wire::Grant::real_libcuda))
      return Error{Errc::kInvalid, "create a lease: library path too long: " + *path};
  if (request.driver.size() >= sizeof(Table::driver) ||
      request.cgroup.size() >= sizeof(Table::cgroup))
    return Error{Errc::kInvalid, "create a lease: driver or cgroup name too long"};
  return {};
}

}  // namespace

Book::Book(BookOptions options, ProbeSource& probes, Loop& loop)
    : options_(std::move(options)),
      probes_(probes),
      loop_(loop),
      compute_(options_.directory.parent_path() / "gpus", options_.log) {}

Status Book::adopt_all() {
  if (const Status made = make_directories(options_.directory, options_.mode); !made) return made;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(options_.directory, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) {  // a lease that was never finished
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    } else if (const Status adopted = adopt(entry.path()); !adopted) {
      options_.log.warning(adopted.error().message + "; removed");
      discard(entry.path());
    }
  }
  if (code)
    return Error{Errc::kInternal, "read " + options_.directory.string() + ": " + code.message()};
  return {};
}

Status Book::adopt(const fs::path& directory) {
  auto lease = Lease::adopt(directory, options_.log);
  if (!lease) return lease.error();
  options_.log.info("lease " + (*lease)->name() + ": taken over");
  reclaim_gpus(**lease);
  return enter(std::move(*lease));
}

// Claims end with the broker that made them. A lease that stands is kept whatever another user's
// broker has done meanwhile.
void Book::reclaim_gpus(const Lease& lease) {
  if (!probe(lease.driver()) || !open_probes_[lease.driver()].probe->is_machine_wide()) return;
  for (unsigned i = 0; i < lease.gpus(); ++i)
    if (const Status claimed = claims_.claim(lease.uuid(i)); !claimed)
      options_.log.warning(claimed.error().message);
}

// A lease that cannot be taken over: whoever still maps its grant gets nothing any more.
void Book::discard(const fs::path& directory) {
  if (auto grant = MappedFile::open(directory / "grant", sizeof(wire::Grant)); grant) {
    auto& page = *static_cast<wire::Grant*>(grant->data());
    for (auto& gpu : page.gpu) gpu.memory_limit_bytes = 0;
    page.state = static_cast<std::uint32_t>(wire::LeaseState::kPoisoned);
    page.generation++;
  }
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

Status Book::enter(std::unique_ptr<Lease> lease) {
  auto socket = LeaseSocket::open(*lease, loop_, options_.identity, options_.socket);
  if (!socket) return socket.error();
  const std::string name = lease->name();
  if (!lease->files().is_guarded())
    options_.log.warning("lease " + name +
                         ": no read-only mount for its grant; it holds against accidents, not "
                         "against root or programs of the same user that mean to cheat");
  compute_.enter(*lease);
  leases_[name] = {std::move(lease), std::move(*socket)};
  ++changes_;
  return {};
}

std::string Book::fresh_name() {
  for (;;) {
    std::string name = "lease-" + std::to_string(next_number_++);
    if (!leases_.contains(name)) return name;
  }
}

Result<LeaseGrant> Book::create(LeaseRequest request, Peer runner) {
  if (request.name.empty()) request.name = fresh_name();
  if (const Status good = check_name(request.name); !good) return good.error();
  if (const Status good = check_request(request); !good) return good.error();
  remove_finished();
  if (const auto known = leases_.find(request.name); known != leases_.end()) {
    // The same runner asks again: a broker died before it answered.
    if (known->second.lease->has_runner(runner.identity)) return known->second.lease->as_granted();
    return Error{Errc::kInvalid, "create lease " + request.name +
                                     ": it exists; join it with --lease " + request.name +
                                     ", or choose another name"};
  }
  auto lease = make(request);
  if (!lease) return lease.error();
  Lease& made = **lease;
  made.set_owner(runner.uid);
  Status begun = made.add_runner(std::move(runner));
  if (begun) begun = enter(std::move(*lease));
  if (!begun) {
    discard(options_.directory / request.name);
    return begun.error();
  }
  return leases_.at(request.name).lease->as_granted();
}

Result<std::unique_ptr<Lease>> Book::make(const LeaseRequest& request) {
  if (leases_.size() >= kMostLeases)
    return Error{Errc::kExhausted,
                 "create a lease: this broker keeps " + std::to_string(kMostLeases) + " already"};
  const auto gpus = probe(request.driver);
  if (!gpus) return gpus.error();
  const auto granted = admit(request, rooms_of(request.driver, *gpus), *gpus, options_.choose);
  if (!granted) return granted.error();
  if (const Status good = check_terms(request, *granted); !good) return good.error();
  if (const Status claimed = claim(request.driver, *granted); !claimed) return claimed.error();
  auto lease = Lease::create(options_.directory / request.name, request, *granted, options_.log);
  if (!lease) return lease;
  options_.log.info("lease " + request.name + ": created on " + std::to_string((*lease)->gpus()) +
                    ((*lease)->gpus() == 1 ? " GPU, " : " GPUs, ") +
                    model::memory_text((*lease)->limit_bytes(0)) + " each");
  return lease;
}

Result<LeaseGrant> Book::hold(const LeaseRequest& request) {
  if (const Status good = check_name(request.name); !good) return good.error();
  if (const Status good = check_request(request); !good) return good.error();
  remove_finished();
  if (leases_.contains(request.name))
    return Error{Errc::kInvalid, "hold lease " + request.name + ": it exists"};
  auto lease = make(request);
  if (!lease) return lease.error();
  (*lease)->hold(true);
  Status entered;
  if (options_.hold_guarded_only && !(*lease)->files().is_guarded())
    entered = Error{Errc::kDenied, "hold lease " + request.name +
                                       ": no read-only mount for its grant, which root in a "
                                       "container could then write; it takes CAP_SYS_ADMIN"};
  if (entered) entered = enter(std::move(*lease));
  if (!entered) {
    discard(options_.directory / request.name);
    return entered.error();
  }
  return leases_.at(request.name).lease->as_granted();
}

Status Book::release(const std::string& name) {
  const auto at = find(name);
  if (!at) return at.error();
  Lease& lease = *(*at)->second.lease;
  lease.hold(false);
  lease.end(wire::LeaseState::kEnded);
  remove_finished();
  return {};
}

std::vector<std::string> Book::held_names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : leases_)
    if (entry.lease->is_held()) names.push_back(name);
  return names;
}

Result<std::uint32_t> Book::owner_of(const std::string& name) {
  const auto at = find(name);
  if (!at) return at.error();
  return (*at)->second.lease->owner_uid();
}

Status Book::claim(const std::string& driver, const std::vector<LeaseGpu>& gpus) {
  if (!open_probes_[driver].probe->is_machine_wide()) return {};
  for (const LeaseGpu& gpu : gpus)
    if (const Status claimed = claims_.claim(gpu.uuid); !claimed) {
      release_claims();
      return claimed;
    }
  return {};
}

// What no lease is on any more.
void Book::release_claims() {
  std::set<std::string> used;
  for (const auto& [name, entry] : leases_)
    for (unsigned i = 0; i < entry.lease->gpus(); ++i) used.insert(entry.lease->uuid(i));
  claims_.keep_only(used);
}

Result<Book::Entries::iterator> Book::find(const std::string& name) {
  const auto at = leases_.find(name);
  if (at != leases_.end()) return at;
  std::string known;
  for (const auto& [other, entry] : leases_) known += (known.empty() ? "" : ", ") + other;
  return Error{Errc::kNotFound,
               "find lease " + name + ": there " + (known.empty() ? "is none" : "are: " + known)};
}

Result<LeaseGrant> Book::join(const std::string& name, Peer runner) {
  const auto at = find(name);
  if (!at) return at.error();
  Lease& lease = *(*at)->second.lease;
  if (lease.state() != wire::LeaseState::kLive)
    return Error{Errc::kInvalid, "join lease " + name + ": it takes no more processes"};
  if (const Status added = lease.add_runner(std::move(runner)); !added) return added.error();
  return lease.as_granted();
}

Result<std::vector<ProbedGpu>> Book::probe(const std::string& driver) {
  OpenProbe& open = open_probes_[driver];
  if (!open.probe) {
    auto opened = probes_.open(driver);
    if (!opened) {
      open_probes_.erase(driver);
      return opened.error();
    }
    open.probe = std::move(*opened);
  }
  auto gpus = open.probe->gpus();
  if (!gpus) {
    open_probes_.erase(driver);  // opened again the next time
    return gpus;
  }
  open.last = *gpus;
  open.bypasses.reset();
  open.recent = true;
  return gpus;
}

std::vector<RoomRow> Book::rooms_of(const std::string& driver, const std::vector<ProbedGpu>& gpus) {
  std::vector<GpuPromises> promised(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    promised[i].settings = compute_.settings(driver, gpus[i].uuid);
  for (const auto& [name, entry] : leases_) {
    const Lease& lease = *entry.lease;
    if (lease.driver() != driver) continue;
    for (unsigned i = 0; i < lease.gpus(); ++i) {
      const auto at = std::ranges::find(gpus, lease.uuid(i), &ProbedGpu::uuid);
      if (at == gpus.end()) continue;
      GpuPromises& gpu = promised[static_cast<std::size_t>(at - gpus.begin())];
      // Used is the tenant's claim: more than its limit is not believed.
      const std::uint64_t limit = lease.limit_bytes(i);
      gpu.shares.push_back(
          {limit, std::min(limit, lease.used_bytes(i)), guaranteed_cores(lease, i, gpu.settings)});
    }
  }
  return rooms(gpus, promised);
}

Result<std::vector<RoomRow>> Book::room(const std::string& driver) {
  const auto gpus = probe(driver);
  if (!gpus) return gpus.error();
  return rooms_of(driver, *gpus);
}

Status Book::set_observed(const std::string& name, bool observed) {
  const auto at = find(name);
  if (!at) return at.error();
  (*at)->second.lease->set_observed(observed);
  return {};
}

void Book::often() {
  const bool images = ++rounds_ % kRoundsToImages == 0;
  for (auto& [name, entry] : leases_) {
    entry.socket->tidy();
    if (images) entry.lease->check_images();
  }
  remove_finished();
  audit_compute();
}

void Book::remove_finished() {
  for (auto at = leases_.begin(); at != leases_.end();) {
    at->second.lease->reap();
    at = at->second.lease->is_over() ? remove(at) : std::next(at);
  }
}

void Book::seldom() {
  for (auto& [name, entry] : leases_) entry.lease->audit();
  hold_to_measured();
  compute_.seldom();
}

Book::Entries::iterator Book::remove(Entries::iterator entry) {
  Lease& lease = *entry->second.lease;
  lease.end(wire::LeaseState::kEnded);
  options_.log.info("lease " + entry->first + ": ended");
  const fs::path directory = lease.files().directory();
  compute_.leave(lease);
  entry->second.socket.reset();
  const auto next = leases_.erase(entry);
  release_claims();
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  ++changes_;
  return next;
}

}  // namespace aliquot::broker
