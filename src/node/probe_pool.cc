#include "node/probe_pool.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

namespace aliquot::node {
namespace {

constexpr Nanoseconds kTick = kSecond;
// Whoever decides something asks by himself (measure()).
constexpr Nanoseconds kLongestBetween = 5 * kSecond;
constexpr Nanoseconds kMeasure = 50 * kMillisecond;
// NVML answers in milliseconds; a GPU that is being reset takes seconds.
constexpr Nanoseconds kSilentAfter = 5 * kSecond;
constexpr Nanoseconds kKillAfter = 30 * kSecond;
constexpr Nanoseconds kFirstPause = kSecond, kLongestPause = 60 * kSecond;
// A reading older than this says nothing about room any more.
constexpr Nanoseconds kStale = 15 * kSecond;
// They are looked at four times a second.
constexpr std::uint64_t kUseKeptUs = 2'000'000;
constexpr std::size_t kLongestLine = 1u << 20;

}  // namespace

ProbePool::ProbePool(Options options, std::vector<KnownGpu> gpus, broker::Loop& loop,
                     ProbeListener* listener)
    : options_(std::move(options)), loop_(loop), listener_(listener) {
  ask_every(options_.ask_every);
  set_gpus(std::move(gpus));
  loop_.every(kTick, [this] { tick(); });
}

ProbePool::~ProbePool() {
  for (const auto& probe : probes_) stop(*probe);
}

// Health is judged by the first reading after an interval: so soon after it must there be one.
void ProbePool::ask_every(Nanoseconds interval) {
  options_.ask_every = std::clamp(interval / 4, kTick, kLongestBetween);
}

// By the tick that is nearest.
bool ProbePool::wants_reading(const Probe& probe) const {
  return loop_.now() - probe.last_asked_at >= options_.ask_every - kTick / 2;
}

void ProbePool::set_gpus(std::vector<KnownGpu> gpus) {
  std::vector<std::unique_ptr<Probe>> next;
  for (KnownGpu& gpu : gpus) {
    const auto old = std::ranges::find_if(
        probes_, [&](const auto& probe) { return probe && probe->gpu.uuid == gpu.uuid; });
    if (old != probes_.end()) {
      next.push_back(std::move(*old));
      next.back()->gpu = std::move(gpu);
    } else {
      next.push_back(std::make_unique<Probe>());
      next.back()->gpu = std::move(gpu);
      start(*next.back());
      ask(*next.back(), kAskReading);
    }
  }
  for (const auto& probe : probes_)
    if (probe) stop(*probe);
  probes_ = std::move(next);
}

void ProbePool::start(Probe& probe) {
  probe.started_at = loop_.now();
  probe.partial.clear();
  probe.asked_at = 0;
  auto child =
      ChildProcess::start({options_.program.string(), "gpu", options_.libnvidia_ml.string(),
                           probe.gpu.uuid, probe.gpu.bus_id});
  if (!child) {
    options_.log.error(child.error().message);
    return;
  }
  probe.child.emplace(*std::move(child));
  const Status watched = loop_.add(probe.child->output(), [this, &probe] { drain(probe); });
  if (!watched) options_.log.error(watched.error().message);
}

void ProbePool::stop(Probe& probe) {
  if (!probe.child) return;
  loop_.remove(probe.child->output());
  probe.child.reset();
  probe.asked_at = 0;
}

void ProbePool::ask(Probe& probe, char question) {
  if (!probe.child || probe.asked_at != 0 || !probe.child->send(question)) return;
  probe.asked_at = loop_.now();
  if (question == kAskReading) probe.last_asked_at = probe.asked_at;
}

void ProbePool::drain(Probe& probe) {
  std::array<char, 16 << 10> buffer{};
  while (probe.child) {
    const ssize_t n = ::read(probe.child->output(), buffer.data(), buffer.size());
    if (n < 0) break;                                                       // EAGAIN: that was all
    if (n == 0 || probe.partial.size() > kLongestLine) return stop(probe);  // tick() starts anew
    probe.partial.append(buffer.data(), static_cast<std::size_t>(n));
  }
  for (std::size_t end = 0; (end = probe.partial.find('\n')) != std::string::npos;) {
    const auto line = parse_probe_line(std::string_view(probe.partial).substr(0, end));
    probe.partial.erase(0, end + 1);
    if (line) take(probe, *line);
  }
}

void ProbePool::take(Probe& probe, const ProbeLine& line) {
  if (line.xid && listener_ != nullptr) listener_->xid(probe.gpu.uuid, *line.xid);
  if (!line.use.empty()) keep_use(probe, line.use);
  if (!line.reading && !line.held && line.error.empty()) return;
  probe.asked_at = 0;
  if (!line.reading && !line.held) return;  // the driver's own error: its reading ages
  probe.pause = 0;
  probe.told_silent_at = 0;
  if (line.held) {
    if (!probe.reading) return;  // a whole one is to come first
    probe.held_at = loop_.now();
    probe.reading->state.memory = line.held->memory;
    probe.reading->state.processes = line.held->processes;
    return;
  }
  probe.reading = line.reading;
  if (line.error.empty()) probe.read_at = probe.held_at = loop_.now();
  if (listener_ != nullptr) listener_->read(probe.gpu.uuid, *line.reading);
}

void ProbePool::keep_use(Probe& probe, const std::vector<inventory::NvmlUse>& samples) {
  std::uint64_t newest = 0;
  for (const inventory::NvmlUse& sample : samples) {
    newest = std::max(newest, sample.at_us);
    probe.use.push_back({sample.pid, sample.at_us, static_cast<double>(sample.percent)});
  }
  std::erase_if(probe.use,
                [&](const broker::ProbedUse& one) { return one.at_us + kUseKeptUs < newest; });
}

std::vector<broker::ProbedUse> ProbePool::use(std::uint32_t gpu, std::uint64_t after_us) const {
  std::vector<broker::ProbedUse> newer;
  if (gpu < probes_.size())
    std::ranges::copy_if(probes_[gpu]->use, std::back_inserter(newer),
                         [&](const broker::ProbedUse& one) { return one.at_us > after_us; });
  return newer;
}

void ProbePool::tick() {
  const Nanoseconds now = loop_.now();
  std::vector<LatestReading> latest;
  for (const auto& one : probes_) {
    Probe& probe = *one;
    const Nanoseconds open = probe.asked_at != 0 ? now - probe.asked_at : 0;
    // Once may be a reset; who judges health wants to hear that it goes on, also of a probe that
    // was started anew.
    if (open > kSilentAfter && now - probe.told_silent_at >= kSilentAfter) {
      if (std::exchange(probe.told_silent_at, now) == 0)
        options_.log.warning("GPU " + probe.gpu.uuid + ": no answer for 5 s; its figures age");
      if (listener_ != nullptr) listener_->silent(probe.gpu.uuid);
    }
    if (open > kKillAfter) stop(probe);
    if (!probe.child && now - probe.started_at >= probe.pause) {
      probe.pause = std::clamp(2 * probe.pause, kFirstPause, kLongestPause);
      ++probe.restarts;
      start(probe);
    }
    if (wants_reading(probe)) ask(probe, kAskReading);
    latest.push_back({probe.gpu.uuid, probe.reading, probe.read_at, probe.restarts});
  }
  const std::lock_guard lock(mutex_);
  latest_ = std::move(latest);
}

// Those silent before are not waited for.
void ProbePool::await_answers() {
  const Nanoseconds until = loop_.now() + kMeasure;
  for (;;) {
    std::vector<pollfd> open;
    std::vector<Probe*> of;
    for (const auto& one : probes_) {
      Probe& probe = *one;
      if (probe.child && probe.asked_at != 0 && probe.told_silent_at == 0 &&
          until - probe.asked_at <= 2 * kMeasure) {
        open.push_back({probe.child->output(), POLLIN, 0});
        of.push_back(&probe);
      }
    }
    const Nanoseconds left = until - loop_.now();
    if (open.empty() || left <= 0) return;
    if (::poll(open.data(), open.size(), static_cast<int>(left / kMillisecond) + 1) <= 0) return;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open[i].revents != 0) drain(*of[i]);
  }
}

std::vector<broker::ProbedGpu> ProbePool::measure() {
  // A reading tells what is held too: who measures all the time must not keep it from being asked.
  for (const auto& probe : probes_) ask(*probe, wants_reading(*probe) ? kAskReading : kAskHeld);
  await_answers();
  std::vector<broker::ProbedGpu> rows;
  for (const auto& probe : probes_) rows.push_back(row(*probe));
  return rows;
}

broker::ProbedGpu ProbePool::row(const Probe& probe) const {
  broker::ProbedGpu row;
  row.uuid = probe.gpu.uuid;
  row.name = probe.gpu.name;
  row.bus_id = probe.gpu.bus_id;
  row.total_bytes = probe.gpu.total_bytes;
  row.context_overhead_bytes = probe.gpu.context_overhead_bytes;
  row.time_scale_micro = probe.gpu.time_scale_micro;
  if (!probe.reading || probe.held_at == 0 || loop_.now() - probe.held_at > kStale) {
    row.trouble = probe.held_at == 0
                      ? "NVML has not answered about it yet"
                      : "NVML does not answer about it since " +
                            std::to_string((loop_.now() - probe.held_at) / kSecond) + " s";
    return row;
  }
  const inventory::NvmlState& state = probe.reading->state;
  // The driver's own part is nobody's to share.
  row.total_bytes = state.memory.total_bytes - state.memory.reserved_bytes;
  row.free_bytes = state.memory.free_bytes;
  for (const inventory::NvmlProcess& process : state.processes)
    row.processes.push_back({process.pid, process.bytes.value_or(0)});
  return row;
}

std::vector<LatestReading> ProbePool::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

}  // namespace aliquot::node
