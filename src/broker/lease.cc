#include "broker/lease.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/files.h"
#include "model/quantity.h"

namespace aliquot::broker {
namespace {

// Keys of the deaths epoll: slots by number, runners above them.
constexpr std::uint64_t kRunnerKey = 1ull << 32;
constexpr unsigned kMostComplaints = 50;
// Where nobody is attached only a stray mapping can write: looked at every so many rounds.
constexpr unsigned kIdleRounds = 10;
constexpr unsigned kBumpRounds = 64;

void copy_text(char* to, std::size_t size, const std::string& text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = '\0';
}

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word) word = static_cast<std::uint64_t>(getpid());
  return word;
}

// "GPU-8-4-4-4-12" hex to 16 bytes; what is no hex digit is skipped.
void parse_uuid(const std::string& text, std::uint8_t (&bytes)[16]) {
  unsigned nibble = 0;
  for (const char c : text.substr(std::min<std::size_t>(text.find('-') + 1, text.size()))) {
    const bool digit = c >= '0' && c <= '9', letter = (c | 32) >= 'a' && (c | 32) <= 'f';
    if ((!digit && !letter) || nibble >= 32) continue;
    const auto value = static_cast<std::uint8_t>(digit ? c - '0' : (c | 32) - 'a' + 10);
    bytes[nibble / 2] = static_cast<std::uint8_t>(bytes[nibble / 2] << 4 | value);
    ++nibble;
  }
}

void fill_gpu(wire::GrantGpu& to, const LeaseGpu& gpu, const LeaseRequest& request) {
  to.memory_limit_bytes = std::min(gpu.limit_bytes, wire::kUnlimitedBytes);
  to.physical_bytes = gpu.physical_bytes;
  to.context_overhead_bytes = gpu.context_overhead_bytes;
  to.cores = gpu.cores;
  to.policy = static_cast<std::uint32_t>(wire::Policy::kBurst);  // until the GPU's is read
  to.weight = request.weight;
  to.share_class = static_cast<std::uint32_t>(request.share_class);
  to.priority = request.priority;
  to.capped = request.capped ? 1 : 0;
  to.oversubscription = static_cast<std::uint32_t>(request.oversubscription);
  to.time_scale_micro = gpu.time_scale_micro;
  copy_text(to.uuid_text, sizeof to.uuid_text, gpu.uuid);
  parse_uuid(gpu.uuid, to.uuid);
}

struct ProcessNumbers {
  std::int32_t broker = 0;
  std::int32_t own = 0;
  std::uint64_t pid_namespace = 0;
};
void name_process(wire::Cell& cell, const ProcessNumbers& numbers) {
  cell.pid_namespace.store(numbers.pid_namespace, std::memory_order_relaxed);
  cell.own_pid.store(static_cast<std::uint32_t>(numbers.own), std::memory_order_relaxed);
  cell.broker_pid.store(static_cast<std::uint32_t>(numbers.broker), std::memory_order_relaxed);
}

}  // namespace

Lease::Lease(LeaseFiles files, log::Log log)
    : files_(std::move(files)),
      log_(std::move(log)),
      deaths_(epoll_create1(EPOLL_CLOEXEC)),
      slot_pidfd_(files_.grant().slot_count),
      runner_pidfd_(kMaxRunners) {}

Result<std::unique_ptr<Lease>> Lease::create(const std::filesystem::path& directory,
                                             const LeaseRequest& request,
                                             const std::vector<LeaseGpu>& gpus, log::Log log) {
  auto files = LeaseFiles::create(
      directory, static_cast<unsigned>(gpus.size()), request.slots, random_word(),
      [&](LeaseFiles& made) {
        wire::Grant& grant = made.grant();
        Table& table = made.table();
        copy_text(grant.name, sizeof grant.name, request.name);
        copy_text(grant.real_libcuda, sizeof grant.real_libcuda, request.real_libcuda);
        copy_text(grant.real_libnvidia_ml, sizeof grant.real_libnvidia_ml,
                  request.real_libnvidia_ml);
        copy_text(table.driver, sizeof table.driver, request.driver);
        copy_text(table.cgroup, sizeof table.cgroup, request.cgroup);
        for (std::size_t i = 0; i < gpus.size(); ++i) {
          fill_gpu(grant.gpu[i], gpus[i], request);
          table.gpu_index[i] = gpus[i].index;
          table.granted_bytes[i] = grant.gpu[i].memory_limit_bytes;
        }
        if (request.observe)
          grant.enforcement = static_cast<std::uint32_t>(wire::Enforcement::kObserve);
        grant.state = static_cast<std::uint32_t>(wire::LeaseState::kLive);
        grant.generation = 1;
        table.starts = 1;
      });
  if (!files) return files.error();
  return std::unique_ptr<Lease>(new Lease(std::move(*files), std::move(log)));
}

Result<std::unique_ptr<Lease>> Lease::adopt(const std::filesystem::path& directory, log::Log log) {
  auto files = LeaseFiles::open(directory);
  if (!files) return files.error();
  std::unique_ptr<Lease> lease(new Lease(std::move(*files), std::move(log)));
  lease->take_over();
  return lease;
}

void Lease::take_over() {
  Table& table = files_.table();
  table.starts++;
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    const std::uint64_t granted = limit_bytes(gpu);
    held_back_[gpu] = granted - std::min(granted, grant().gpu[gpu].memory_limit_bytes.load());
    excess_[gpu] = SteadyExcess(held_back_[gpu]);
    if (const Status held = enforce_limit(gpu); !held) complain(held.error().message);
  }
  for (unsigned slot = 0; slot < slot_count(); ++slot) {
    TableEntry& entry = table.slot[slot];
    if (!entry.in_use()) continue;
    auto pidfd = find_process(entry.identity());
    if (!pidfd) {
      slot_of_[entry.identity()] = slot;  // free_slot() takes it out
      if (!free_slot(slot)) stuck_.push_back(slot);
      continue;
    }
    slot_of_[entry.identity()] = slot;
    watch(pidfd->get(), slot);
    slot_pidfd_[slot] = std::move(*pidfd);
  }
  for (unsigned i = 0; i < kMaxRunners; ++i) {
    TableEntry& entry = table.runner[i];
    if (!entry.in_use()) continue;
    auto pidfd = find_process(entry.identity());
    if (!pidfd) {
      entry.free();
      continue;
    }
    watch(pidfd->get(), kRunnerKey | i);
    runner_pidfd_[i] = std::move(*pidfd);
    ++runners_;
  }
  audit();
}

void Lease::watch(int pidfd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (epoll_ctl(deaths_.get(), EPOLL_CTL_ADD, pidfd, &event) != 0)
    complain("watch a process: " + std::string(std::strerror(errno)));
}

Lease::AttachAnswer Lease::refuse(wire::Answer answer, std::string reason) {
  files_.table().refused++;
  complain("attach refused: " + reason);
  return {answer, -1, std::move(reason)};
}

// A hostile tenant shall not fill the log either.
void Lease::complain(std::string_view text) {
  if (++complaints_ > kMostComplaints) return;
  log_.warning("lease " + name() + ": " + std::string(text) +
               (complaints_ == kMostComplaints ? " (no more is said about this lease)" : ""));
}

Lease::AttachAnswer Lease::attach(Peer peer, std::uint64_t image) {
  if (state() != wire::LeaseState::kLive)
    return refuse(wire::Answer::kEnded, state() == wire::LeaseState::kPoisoned
                                            ? "the lease's ledger was truncated; start a new lease"
                                            : "the lease has ended");
  if (const auto known = slot_of_.find(peer.identity); known != slot_of_.end())
    return attach_again(known->second, peer, image);
  const std::int32_t pid = peer.identity.pid;
  const Belongs how = belongs(pid);
  if (how == Belongs::kNo)
    return refuse(wire::Answer::kNotOfLease,
                  "process " + std::to_string(pid) + " is not of lease " + name() +
                      "'s run; start it with: aliquot run --lease " + name() + " -- COMMAND");
  const int unused = unused_slot();
  if (unused < 0)
    return refuse(wire::Answer::kFull, "all " + std::to_string(slot_count()) +
                                           " process slots of lease " + name() + " are taken");
  const auto slot = static_cast<unsigned>(unused);
  written_ = true;
  // Orphan bytes: a survivor in a killed process's memory may have written after its reclaim.
  if (!is_alive(peer.pidfd.get()) || !empty_slot(slot)) return {};
  if (how == Belongs::kByDescent) remember_namespaces(pid);
  files_.table().slot[slot].assign(peer.identity, image, peer.stat.start_stack);
  files_.table().attaches++;
  slot_of_[peer.identity] = slot;
  show_process(slot, pid);
  watch(peer.pidfd.get(), slot);
  slot_pidfd_[slot] = std::move(peer.pidfd);
  tell_slot(slot, true);
  return {wire::Answer::kDone, unused, {}};
}

// A second copy of the library in one image, a retry after a broker's death, or a new image.
Lease::AttachAnswer Lease::attach_again(unsigned slot, const Peer& peer, std::uint64_t image) {
  TableEntry& entry = files_.table().slot[slot];
  files_.table().reattaches++;
  if (entry.image != image) {
    if (!empty_slot(slot)) return {};
    entry.image = image;
    entry.start_stack = peer.stat.start_stack;
    show_process(slot, peer.identity.pid);
    files_.table().execs++;
    tell_slot(slot, true);
  }
  return {wire::Answer::kDone, static_cast<int>(slot), {}};
}

int Lease::unused_slot() const {
  const auto at = std::ranges::find_if(slot_pidfd_, [&](const UniqueFd& fd) {
    const auto slot = static_cast<std::size_t>(&fd - slot_pidfd_.data());
    return !fd && !files_.table().slot[slot].in_use();
  });
  return at == slot_pidfd_.end() ? -1 : static_cast<int>(at - slot_pidfd_.begin());
}

Belongs Lease::belongs(std::int32_t pid) const {
  std::vector<std::int32_t> processes;
  for (const TableEntry& entry : files_.table().runner)
    if (entry.in_use()) processes.push_back(entry.pid);
  for (const auto& [identity, slot] : slot_of_) processes.push_back(identity.pid);
  return membership_of(pid, {processes, files_.table().namespaces, files_.table().cgroup});
}

// A namespace that is neither the broker's nor where a runner was at home was made by the run:
// whatever is in it belongs, even when its parents have gone.
void Lease::remember_namespaces(std::int32_t pid) {
  Table& table = files_.table();
  const char* names[] = {"mnt", "pid"};
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t own = namespace_of(pid, names[i]);
    if (own == 0 || own == own_namespace(names[i])) continue;
    if (std::ranges::any_of(table.runner, [&](const TableEntry& runner) {
          return runner.in_use() && runner.home[i] == own;
        }))
      continue;
    if (std::ranges::find(table.namespaces, own) != std::end(table.namespaces)) continue;
    if (auto* unused = std::ranges::find(table.namespaces, 0u);
        unused != std::end(table.namespaces))
      *unused = own;
  }
}

Status Lease::add_runner(Peer peer) {
  if (has_runner(peer.identity)) return {};
  for (unsigned i = 0; i < kMaxRunners; ++i) {
    TableEntry& entry = files_.table().runner[i];
    if (entry.in_use()) continue;
    entry.home[0] = namespace_of(peer.identity.pid, "mnt");
    entry.home[1] = namespace_of(peer.identity.pid, "pid");
    entry.assign(peer.identity, 0, 0);
    watch(peer.pidfd.get(), kRunnerKey | i);
    runner_pidfd_[i] = std::move(peer.pidfd);
    ++runners_;
    return {};
  }
  return Error{Errc::kExhausted,
               "join lease " + name() + ": " + std::to_string(kMaxRunners) + " commands run in it"};
}

bool Lease::has_runner(const ProcessIdentity& identity) const {
  return std::ranges::any_of(files_.table().runner, [&](const TableEntry& entry) {
    return entry.in_use() && entry.identity() == identity;
  });
}

void Lease::drop_runner(unsigned runner) {
  files_.table().runner[runner].free();
  runner_pidfd_[runner].reset();
  --runners_;
}

void Lease::reap() {
  if (slot_of_.empty() && runners_ == 0) return;  // nobody's end is waited for
  std::erase_if(stuck_, [&](unsigned slot) { return free_slot(slot); });
  epoll_event events[64];
  for (int round = 0; round < 64; ++round) {
    const int n = epoll_wait(deaths_.get(), events, 64, 0);
    if (n <= 0) return;
    for (int i = 0; i < n; ++i) {
      const std::uint64_t key = events[i].data.u64;
      if ((key & kRunnerKey) != 0) {
        drop_runner(static_cast<unsigned>(key));
      } else if (const auto slot = static_cast<unsigned>(key); !free_slot(slot)) {
        // Not watched meanwhile: a scribbler must not keep the loop awake. The next reap() retries.
        epoll_ctl(deaths_.get(), EPOLL_CTL_DEL, slot_pidfd_[slot].get(), nullptr);
        stuck_.push_back(slot);
      }
    }
  }
}

// For those who list the lease's processes; nothing here reads it back.
void Lease::show_process(unsigned slot, std::int32_t pid) {
  const std::uint64_t home = namespace_of(pid, "pid");
  const ProcessNumbers numbers{pid, home == own_namespace("pid") ? pid : innermost_pid(pid), home};
  for (unsigned gpu = 0; gpu < gpus(); ++gpu)
    name_process(files_.ledger().cell(slot, gpu), numbers);
}

// Subtract first, count down last.
bool Lease::empty_slot(unsigned slot) {
  bool done = true;
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    done &= quota(gpu).reclaim(slot) == wire::Outcome::kOk;
    wire::Cell& cell = files_.ledger().cell(slot, gpu);
    for (auto& kind : cell.kind_bytes) kind.store(0, std::memory_order_relaxed);
    TableTotals& totals = files_.table().totals[gpu];
    totals.refusals += cell.refusals.exchange(0, std::memory_order_relaxed);
    totals.launches += cell.launches.exchange(0, std::memory_order_relaxed);
    totals.waiting_ns += cell.waiting_ns.exchange(0, std::memory_order_relaxed);
    files_.table().would_refuse += cell.would_refuse.exchange(0, std::memory_order_relaxed);
    cell.demand.store(0, std::memory_order_relaxed);
    cell.gate_refusals.store(0, std::memory_order_relaxed);
    name_process(cell, {});
    for (auto& word : cell.gate) word.store(0, std::memory_order_relaxed);
  }
  return done;
}

bool Lease::free_slot(unsigned slot) {
  tell_slot(slot, false);
  if (!empty_slot(slot)) return false;
  TableEntry& entry = files_.table().slot[slot];
  slot_of_.erase(entry.identity());
  entry.free();
  files_.table().reaps++;
  slot_pidfd_[slot].reset();
  return true;
}

void Lease::follow_slots(SlotObserver observer) {
  slot_observer_ = std::move(observer);
  if (!slot_observer_) return;
  for (const auto& [identity, slot] : slot_of_) tell_slot(slot, true);
}

void Lease::tell_slot(unsigned slot, bool taken) {
  if (slot_observer_) slot_observer_(slot, taken);
}

bool Lease::image_is_gone(const TableEntry& entry) const {
  const auto stat = process_stat(entry.pid);
  return stat && entry.start_stack != 0 && stat->start_stack != 0 &&
         stat->start_stack != entry.start_stack;
}

void Lease::connection_ended(unsigned slot) {
  TableEntry& entry = files_.table().slot[slot];
  if (!slot_pidfd_[slot] || !image_is_gone(entry) || !is_alive(slot_pidfd_[slot].get())) return;
  if (free_slot(slot)) files_.table().execs++;
}

void Lease::check_images() {
  if (slot_of_.empty()) return;  // most leases of a node
  for (unsigned slot = 0; slot < slot_count(); ++slot)
    if (slot_pidfd_[slot]) connection_ended(slot);
}

void Lease::audit() {
  if (!written_ && ++idle_rounds_ % kIdleRounds != 0) return;
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    // First, for taking back what lies in free slots would cover the traces.
    if (quota(gpu).audit() == wire::Outcome::kRefused) {
      files_.table().anomalies++;
      complain("the ledger was written outside its protocol; rebuilt from the processes' cells");
    }
    for (unsigned slot = 0; slot < slot_count(); ++slot) {
      if (files_.table().slot[slot].in_use() || quota(gpu).held_bytes(slot) == 0) continue;
      files_.table().orphans++;
      quota(gpu).reclaim(slot);
    }
  }
  if (files_.was_truncated() && state() == wire::LeaseState::kLive) {
    complain("its ledger was truncated by one of its processes; nothing is granted any more");
    end(wire::LeaseState::kPoisoned);
  }
  written_ = !slot_of_.empty();
}

Status Lease::set_limit(unsigned gpu, std::uint64_t bytes) {
  files_.table().granted_bytes[gpu] = std::min(bytes, wire::kUnlimitedBytes);
  return enforce_limit(gpu);
}

Status Lease::enforce_limit(unsigned gpu) {
  const std::uint64_t granted = limit_bytes(gpu);
  grant().gpu[gpu].memory_limit_bytes.store(granted - std::min(granted, held_back_[gpu]),
                                            std::memory_order_release);
  grant().generation.fetch_add(1, std::memory_order_release);
  for (unsigned round = 0; round < kBumpRounds; ++round)
    if (quota(gpu).bump() == wire::Outcome::kOk) return {};
  return Error{Errc::kUnavailable, "set the limit of lease " + name() +
                                       ": its ledger is being scribbled on; the limit "
                                       "holds for honest processes"};
}

void Lease::hold_back(unsigned gpu, std::uint64_t excess_bytes) {
  const std::uint64_t steady = excess_[gpu].after(excess_bytes);
  if (steady == held_back_[gpu] || state() != wire::LeaseState::kLive) return;
  if (held_back_[gpu] == 0)
    complain("it holds " + model::memory_text(steady) + " of GPU " +
             std::to_string(gpu_index(gpu)) +
             " beyond what is charged to it; it may take so much less");
  held_back_[gpu] = steady;
  // A scribbler that keeps the bump out meets the limit a second later.
  if (const Status held = enforce_limit(gpu); !held) complain(held.error().message);
}

void Lease::set_observed(bool observed) {
  const auto how = observed ? wire::Enforcement::kObserve : wire::Enforcement::kOn;
  if (grant().enforcement.exchange(static_cast<std::uint32_t>(how)) ==
      static_cast<std::uint32_t>(how))
    return;
  grant().generation.fetch_add(1, std::memory_order_release);
}

void Lease::count_flood() {
  if (held_off_++ == 0) complain("its socket is flooded; it waits while others are served");
}

void Lease::end(wire::LeaseState state) {
  grant().state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  if (state == wire::LeaseState::kPoisoned)
    for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
      files_.table().granted_bytes[gpu] = 0;
      grant().gpu[gpu].memory_limit_bytes.store(0, std::memory_order_release);
    }
  grant().generation.fetch_add(1, std::memory_order_release);
}

}  // namespace aliquot::broker
