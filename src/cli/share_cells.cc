#include "cli/share_cells.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "cli/surroundings.h"

namespace aliquot::cli {
namespace {

// Above this a sleeper's lateness, not the gate, makes the figures (docs/adr/0050).
constexpr Nanoseconds kLateHost = 300 * kMicrosecond;
constexpr Nanoseconds kWarmUp = 1 * kSecond;
constexpr Nanoseconds kLook = 10 * kMillisecond;       // of the machine's time, between readings
constexpr Nanoseconds kLeastLook = 50 * kMillisecond;  // of ours: a reading costs the machine some
constexpr Nanoseconds kStartPatience = 60 * kSecond;
constexpr Nanoseconds kEndPatience = 10 * kSecond;

void sleep_for(Nanoseconds time) {
  const timespec span{time / kSecond, time % kSecond};
  nanosleep(&span, nullptr);
}

// How late this host wakes a thread that sleeps for a millisecond.
class WakeLatency {
 public:
  WakeLatency() : thread_([this] { run(); }) {}
  ~WakeLatency() { end(); }
  WakeLatency(const WakeLatency&) = delete;
  WakeLatency& operator=(const WakeLatency&) = delete;

  // Nanoseconds, 99th percentile.
  Nanoseconds end() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    if (late_.empty()) return 0;
    const auto at = late_.begin() + static_cast<std::ptrdiff_t>(late_.size() * 99 / 100);
    std::ranges::nth_element(late_, at);
    return *at;
  }

 private:
  void run() {
    prctl(PR_SET_TIMERSLACK, 1UL);
    const MonotonicClock clock;
    while (!stopped_) {
      const Nanoseconds due = clock.now() + kMillisecond;
      sleep_for(kMillisecond);
      late_.push_back(clock.now() - due);
    }
  }

  std::atomic<bool> stopped_{false};
  std::vector<Nanoseconds> late_;
  std::thread thread_;
};

// The tenants' commands, ended and waited for when this goes.
class Commands {
 public:
  explicit Commands(std::string program) : program_(std::move(program)) {}
  ~Commands() {
    for (const auto& [tenant, pid] : pids_) kill(pid, SIGTERM);
    wait_for(pids_.begin(), pids_.end());
  }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  const std::string& program() const { return program_; }
  // With this tenant's words, before which the program's name comes.
  Status start(std::size_t tenant, std::vector<std::string> words) {
    words.insert(words.begin(), program_);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int error =
        posix_spawn(&pid, program_.c_str(), &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0)
      return Error{Errc::kInternal, "start " + program_ + ": " + std::strerror(error)};
    pids_.emplace(tenant, pid);
    return {};
  }
  // SIGTERM to those of one tenant, and their end.
  void end(std::size_t tenant) {
    const auto [first, last] = pids_.equal_range(tenant);
    for (auto it = first; it != last; ++it) kill(it->second, SIGTERM);
    wait_for(first, last);
    pids_.erase(first, last);
  }
  // Whether one has ended although nobody asked it to.
  bool any_ended() {
    return std::ranges::any_of(pids_, [](const auto& command) {
      siginfo_t info{};
      return waitid(P_PID, static_cast<id_t>(command.second), &info, WEXITED | WNOHANG | WNOWAIT) ==
                 0 &&
             info.si_pid != 0;
    });
  }

 private:
  using Pids = std::multimap<std::size_t, pid_t>;  // by tenant

  static void wait_for(Pids::const_iterator first, Pids::const_iterator last) {
    const MonotonicClock clock;
    const Nanoseconds deadline = clock.now() + kEndPatience;
    for (; first != last; ++first) {
      while (waitpid(first->second, nullptr, WNOHANG) == 0) {
        if (clock.now() > deadline) kill(first->second, SIGKILL);
        sleep_for(5 * kMillisecond);
      }
    }
  }

  const std::string program_;
  Pids pids_;
};

std::string lease_name(std::size_t tenant) {
  return fmt::format("bench-{}-{}", ::getpid(), tenant);
}

// The processes of a tenant that the device knows; fewer than `wanted`: not yet.
std::vector<std::int32_t> processes_of(broker::Client& broker, std::size_t tenant,
                                       const simdriver::DeviceUse& use) {
  std::vector<std::int32_t> pids;
  const auto row = broker.get_lease(lease_name(tenant));
  if (!row) return pids;
  for (const broker::ProcessRow& process : row->rows) {
    const auto found = use.of.find(process.pid);
    if (found != use.of.end() && found->second > 0) pids.push_back(process.pid);
  }
  return pids;
}

using Processes = std::vector<std::vector<std::int32_t>>;

// Everybody from `first` on has had the device once: from then on all compete.
Result<Processes> wait_for_all(const CellMachine& where, const replay::GateCell& cell,
                               std::size_t first, Commands& commands) {
  auto broker = broker_client();
  if (!broker) return broker.error();
  const MonotonicClock clock;
  const Nanoseconds deadline = clock.now() + kStartPatience;
  while (clock.now() < deadline) {
    const auto use = where.account.read();
    if (!use) return use.error();
    Processes all;
    bool complete = true;
    for (std::size_t i = first; i < cell.tenants; ++i) {
      all.push_back(processes_of(*broker, i, *use));
      complete = complete && all.back().size() == static_cast<std::size_t>(cell.specs[i].processes);
    }
    if (complete) return all;
    if (commands.any_ended())
      return Error{Errc::kUnavailable, "cell " + cell.name + ": a tenant ended too early"};
    sleep_for(20 * kMillisecond);
  }
  return Error{Errc::kUnavailable, "cell " + cell.name + ": its tenants did not all begin in time"};
}

Status start_tenants(const CellMachine& where, const replay::GateCell& cell, std::size_t first,
                     std::size_t last, double seconds, Commands& commands) {
  for (std::size_t i = first; i < last; ++i) {
    const replay::TwinTenant& tenant = cell.specs[i];
    const std::vector<std::string> load = load_of(tenant, seconds, static_cast<unsigned>(i) + 1);
    for (int process = 0; process < tenant.processes; ++process) {
      std::vector<std::string> words{"run", "-q"};
      if (process == 0) {
        if (!where.simulated.empty()) words.insert(words.end(), {"--sim", where.simulated});
        words.insert(words.end(),
                     {"--name", lease_name(i), "--gpu", std::to_string(where.gpu), "--memory",
                      "2GiB", "--cores", fmt::format("{}", cell.shares[i])});
      } else {
        words.insert(words.end(), {"--lease", lease_name(i)});
      }
      words.insert(words.end(), {"--", commands.program(), "burn"});
      words.insert(words.end(), load.begin(), load.end());
      if (const Status started = commands.start(i, words); !started) return started;
      // The second process joins a lease that the first one makes.
      if (process + 1 < tenant.processes) sleep_for(500 * kMillisecond);
    }
  }
  return {};
}

double percent_of(Nanoseconds part, Nanoseconds whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Nanoseconds had_by(const std::vector<std::int32_t>& pids, const simdriver::DeviceUse& before,
                   const simdriver::DeviceUse& after) {
  return used_by(pids, before, after) + switching_among(pids, before, after);
}

// Reads the device's account for so long, and watches how far the tenants' shares of it lag.
Result<simdriver::DeviceUse> watch(const CellMachine& where, const simdriver::DeviceUse& before,
                                   const Processes& processes, Nanoseconds time,
                                   MeasuredCell& measured) {
  const Nanoseconds look =
      std::max(static_cast<Nanoseconds>(static_cast<double>(kLook) * where.slowness), kLeastLook);
  const MonotonicClock clock;
  const Nanoseconds end = clock.now() + time;
  while (true) {
    const Nanoseconds left = std::max<Nanoseconds>(0, end - clock.now());
    if (const Status passed = where.account.pass(std::min(look, left)); !passed)
      return passed.error();
    auto now = where.account.read();
    if (!now) return now.error();
    std::vector<double> had_ms;
    for (const auto& pids : processes)
      had_ms.push_back(static_cast<double>(had_by(pids, before, *now)) / 1e6);
    measured.largest_lag_ms =
        std::max(measured.largest_lag_ms, replay::largest_lag(had_ms, measured.targets));
    if (left == 0) return now;
  }
}

// The shares that the broker gives those from `first` on, of what they have together.
Result<std::vector<double>> targets_from(const replay::GateCell& cell, std::size_t first) {
  auto broker = broker_client();
  if (!broker) return broker.error();
  std::vector<double> percent;
  for (std::size_t i = first; i < cell.tenants; ++i) {
    const auto row = broker->get_lease(lease_name(i));
    if (!row) return row.error();
    percent.push_back(row->gpus.at(0).compute.share / 100.0);
  }
  const double all = std::accumulate(percent.begin(), percent.end(), 0.0);
  for (double& share : percent) share *= 100 / all;
  return percent;
}

Status resize_first(const replay::GateCell& cell) {
  auto broker = broker_client();
  if (!broker) return broker.error();
  broker::ShareChange change;
  change.compute.lease = lease_name(0);
  change.compute.cores = static_cast<std::uint32_t>(cell.shares[0] * 100 / 3);
  return broker->set_share(change);
}

}  // namespace

// Only such as keep the device busy alone. Kernels of 5 us do not, nor then does khetero's first
// tenant: a launch takes its caller 4.5 us and the program around it the rest.
std::vector<std::string> real_time_cells() {
  return {"n2-even/k50us/d64/plain",     "n2-30-70/k500us/d64/plain",
          "n2-30-70/k5ms/d4/plain",      "n2-5-95/k500us/d64/plain",
          "n2-30-70/k50ms/d4/plain",     "n2-even/kmix5us/d64/plain",
          "n2-30-70/kpareto/d64/plain",  "n2-30-70/kmix50us/d64/plain",
          "n4-even/k500us/d64/plain",    "n4-skewed/k500us/d1000/plain",
          "n4-even/k5ms/d64/processes2", "n4-skewed/kmix50us/d64/streams4"};
}

std::vector<std::string> slow_motion_cells() {
  std::vector<std::string> cells = real_time_cells();
  const std::vector<std::string> more = {
      "n2-even/k5us/d1000/plain",     "n2-5-95/k5ms/d64/plain",
      "n2-30-70/khetero/d1000/plain", "n2-even/k500us/d64/streams4",
      "n4-skewed/k50us/d64/plain",    "n4-skewed/k50ms/d4/plain",
      "n4-even/kpareto/d1000/plain",  "n4-even/khetero/d64/processes2",
      "n8-even/k500us/d64/plain",     "n8-skewed/k5ms/d64/plain",
      "n8-skewed/kmix50us/d4/plain",  "n16-even/k500us/d64/plain"};
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

Nanoseconds used_by(const std::vector<std::int32_t>& pids, const simdriver::DeviceUse& before,
                    const simdriver::DeviceUse& after) {
  Nanoseconds used = 0;
  for (const std::int32_t pid : pids)
    if (after.of.contains(pid) && before.of.contains(pid))
      used += after.of.at(pid) - before.of.at(pid);
  return used;
}

Nanoseconds switching_among(const std::vector<std::int32_t>& pids,
                            const simdriver::DeviceUse& before, const simdriver::DeviceUse& after) {
  Nanoseconds cost = 0;
  for (const auto& [pair, sum] : after.switching) {
    if (std::ranges::find(pids, pair.first) == pids.end() ||
        std::ranges::find(pids, pair.second) == pids.end())
      continue;
    const auto known = before.switching.find(pair);
    cost += sum - (known != before.switching.end() ? known->second : 0);
  }
  return cost;
}

Result<replay::GateCell> cell_called(std::string_view name) {
  for (replay::GateCell& cell : replay::gate_matrix())
    if (cell.name == name) return std::move(cell);
  return Error{Errc::kNotFound, "no cell is called " + std::string(name) +
                                    "; `aliquot bench shares --list` shows them"};
}

std::vector<std::string> load_of(const replay::TwinTenant& tenant, double seconds, unsigned seed) {
  std::string mix = tenant.mix.pareto ? "pareto:" : "";
  for (const auto& kind : tenant.mix.classes)
    mix += fmt::format("{}{}us:{}", mix.empty() || mix.ends_with(':') ? "" : ",",
                       kind.duration_ns / kMicrosecond, kind.probability);
  if (tenant.mix.sigma > 0) mix += fmt::format("~{}", tenant.mix.sigma);
  return {"--kernels", mix,
          "--depth",   std::to_string(tenant.depth),
          "--streams", std::to_string(tenant.threads),
          "--seconds", fmt::format("{:.0f}", seconds),
          "--seed",    std::to_string(seed)};
}

void judge(MeasuredCell& cell) {
  cell.mean_error = cell.worst_error = 0;
  for (std::size_t i = 0; i < cell.shares.size(); ++i) {
    const double error = std::abs(cell.shares[i] - cell.targets[i]);
    cell.mean_error += error / static_cast<double>(cell.shares.size());
    cell.worst_error = std::max(cell.worst_error, error);
  }
}

Result<MeasuredCell> measure_cell(const std::filesystem::path& program, const CellMachine& where,
                                  const replay::GateCell& cell, CellEvent event,
                                  Nanoseconds machine_time) {
  const auto real = [&](Nanoseconds time) {
    return static_cast<Nanoseconds>(static_cast<double>(time) * where.slowness);
  };
  const double longest =
      static_cast<double>(real(kWarmUp + machine_time) + 2 * kStartPatience) / 1e9;
  Commands commands(program.string());
  const auto start = [&](std::size_t first, std::size_t last) -> Result<Processes> {
    const Status started = start_tenants(where, cell, first, last, longest, commands);
    if (!started) return started.error();
    return wait_for_all(where, cell, first == 0 ? 0 : 1, commands);
  };
  auto processes = start(event == CellEvent::kArrival ? 1 : 0, cell.tenants);
  if (!processes) return processes.error();
  if (const Status passed = where.account.pass(real(kWarmUp)); !passed) return passed.error();
  std::vector<double> targets = cell.shares;
  if (event != CellEvent::kNone) {
    if (event == CellEvent::kArrival) processes = start(0, 1);
    if (!processes) return processes.error();
    if (event == CellEvent::kResize)
      if (const Status resized = resize_first(cell); !resized) return resized.error();
    if (event == CellEvent::kLeave) {
      commands.end(0);
      processes->erase(processes->begin());
    }
    const auto given = targets_from(cell, event == CellEvent::kLeave ? 1 : 0);
    if (!given) return given.error();
    targets = *given;
  }
  WakeLatency latency;
  const auto before = where.account.read();
  if (!before) return before.error();
  MeasuredCell measured{.name = cell.name,
                        .targets = targets,
                        .shares = {},
                        .allowed_lag_ms = replay::allowed_lag_ms(cell)};
  const auto after = watch(where, *before, *processes, real(machine_time), measured);
  if (!after) return after.error();
  const Nanoseconds late = latency.end();
  if (commands.any_ended())
    return Error{Errc::kUnavailable, "cell " + cell.name + ": a tenant ended too early"};
  const Nanoseconds wall = after->now - before->now;
  Nanoseconds busy = after->busy - before->busy;
  for (const auto& pids : *processes) {
    busy += switching_among(pids, *before, *after);
    measured.shares.push_back(percent_of(had_by(pids, *before, *after), wall));
  }
  measured.busy_percent = percent_of(busy, wall);
  measured.wake_p99_us = static_cast<double>(late) / 1e3;
  measured.valid = static_cast<double>(late) <= static_cast<double>(kLateHost) * where.slowness;
  judge(measured);
  return measured;
}

}  // namespace aliquot::cli
