// Copy engines, the run of events, and what can be read of the device's use.
#include <algorithm>

#include "engine/engine.h"

namespace aliquot::engine {

Nanoseconds Engine::copy_duration(const Work& work) const {
  const CopyLaneSpec& lane = spec_.copy[static_cast<std::size_t>(work.lane)];
  return lane.latency +
         static_cast<Nanoseconds>(static_cast<double>(work.bytes) / lane.bytes_per_ns);
}

void Engine::begin_copy(Task task, const Work& work) {
  const auto lane = static_cast<std::size_t>(work.lane);
  lanes_[lane].queue.push_back({task, streams_[task.stream].context.slot, copy_duration(work)});
  if (lanes_[lane].end == kNever) start_copy(lane);
}

void Engine::start_copy(std::size_t number) {
  Lane& lane = lanes_[number];
  if (lane.queue.empty()) return;
  lane.begun = now_;
  lane.end = now_ + lane.queue.front().duration;
}

void Engine::copy_event(std::size_t number) {
  Lane& lane = lanes_[number];
  const Task task = lane.queue.front().task;
  lane.queue.pop_front();
  lane.busy_total += lane.end - lane.begun;
  copy_log_.add(lane.begun, lane.end);
  lane.end = kNever;
  start_copy(number);
  finish(task);
  settle();
}

void Engine::discard_copies(std::uint32_t context) {
  for (std::size_t number = 0; number < kCopyLanes; ++number) {
    Lane& lane = lanes_[number];
    const bool running = lane.end != kNever && lane.queue.front().context == context;
    std::erase_if(lane.queue, [&](const CopyTask& copy) { return copy.context == context; });
    if (!running) continue;
    lane.busy_total += now_ - lane.begun;
    copy_log_.add(lane.begun, now_);
    lane.end = kNever;
    start_copy(number);
  }
}

Nanoseconds Engine::next_event() const {
  Nanoseconds next = next_compute();
  for (const Lane& lane : lanes_) next = std::min(next, lane.end);
  return next;
}

void Engine::advance(Nanoseconds to) {
  while (true) {
    const Nanoseconds next = next_event();
    if (next > to || next == kNever) return;
    now_ = std::max(now_, next);
    if (next_compute() <= now_) compute_event();
    for (std::size_t lane = 0; lane < kCopyLanes; ++lane) {
      if (lanes_[lane].end <= now_) copy_event(lane);
    }
  }
}

Nanoseconds Engine::busy(ContextId id, Nanoseconds now) const {
  const Context* context = find(id);
  if (context == nullptr) return 0;
  return context->busy_total +
         (context->counting ? std::max<Nanoseconds>(0, now - context->busy_since) : 0);
}

Nanoseconds Engine::device_busy(Nanoseconds now) const {
  const bool on = current_ != kNoSpace && spaces_[current_].clock_on;
  return device_log_.total() +
         (on ? std::max<Nanoseconds>(0, now - spaces_[current_].on_since) : 0);
}

Nanoseconds Engine::copy_busy(CopyLane which, Nanoseconds now) const {
  const Lane& lane = lanes_[static_cast<std::size_t>(which)];
  return lane.busy_total + (lane.end != kNever ? std::max<Nanoseconds>(0, now - lane.begun) : 0);
}

// Calls visit(bin, time at which the bin ended) for each bin that a reader at `now` sees.
template <typename Visit>
static void each_visible_bin(const EngineSpec& spec, Nanoseconds since, Nanoseconds now,
                             Visit visit) {
  const Nanoseconds period = spec.sample_period;
  const std::int64_t end = (now - spec.sample_lag) / period;  // bins before this one
  if (now < spec.sample_lag) return;
  for (std::int64_t k = std::max<std::int64_t>(since / period, end - BusyLog::kBins); k < end;
       ++k) {
    if (k >= 0 && (k + 1) * period > since) visit(k, (k + 1) * period);
  }
}

static std::uint32_t percent_of(Nanoseconds busy, Nanoseconds period) {
  return static_cast<std::uint32_t>(std::min<Nanoseconds>(100, busy * 100 / period));
}

std::vector<UtilisationSample> Engine::device_samples(Nanoseconds since, Nanoseconds now) const {
  const Space* on =
      current_ != kNoSpace && spaces_[current_].clock_on ? &spaces_[current_] : nullptr;
  std::vector<UtilisationSample> samples;
  each_visible_bin(spec_, since, now, [&](std::int64_t k, Nanoseconds time) {
    Nanoseconds busy = device_log_.bin(k);
    if (on != nullptr) busy += overlap_with_bin(on->on_since, now, k, spec_.sample_period);
    samples.push_back({time, percent_of(busy, spec_.sample_period)});
  });
  return samples;
}

std::vector<UtilisationSample> Engine::memory_samples(Nanoseconds since, Nanoseconds now) const {
  std::vector<UtilisationSample> samples;
  each_visible_bin(spec_, since, now, [&](std::int64_t k, Nanoseconds time) {
    Nanoseconds busy = copy_log_.bin(k);
    for (const Lane& lane : lanes_) {
      if (lane.end == kNever) continue;
      busy += overlap_with_bin(lane.begun, std::min(now, lane.end), k, spec_.sample_period);
    }
    samples.push_back({time, percent_of(busy, spec_.sample_period)});
  });
  return samples;
}

std::vector<ProcessSample> Engine::process_samples(Nanoseconds since, Nanoseconds now) const {
  std::vector<ProcessSample> samples;
  each_visible_bin(spec_, since, now, [&](std::int64_t k, Nanoseconds time) {
    for (const auto& [process, use] : processes_) {
      Nanoseconds busy = use.log.bin(k);
      if (use.counting > 0) busy += overlap_with_bin(use.since, now, k, spec_.sample_period);
      const std::uint32_t percent = percent_of(busy, spec_.sample_period);
      if (percent > 0) samples.push_back({process, time, percent});
    }
  });
  return samples;
}

}  // namespace aliquot::engine
