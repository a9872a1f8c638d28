#include "simdriver/server/timeline.h"

#include <algorithm>
#include <unordered_map>

namespace aliquot::simdriver {
namespace {

// A command may ask for at most this much: a wrong duration must not overflow the engine's sums.
constexpr std::uint64_t kLongestBlockNs = 1'000'000'000'000'000;
constexpr std::uint64_t kMostBlocks = 1ull << 48;
constexpr std::uint64_t kMostBytes = 1ull << 44;
constexpr std::size_t kMostMarks = 1u << 20;
// A stream's commands that have not ended; libcuda itself waits long before.
constexpr std::uint64_t kMostOutstanding = 1u << 20;

engine::EngineSpec spec_of(const GpuModel& model) {
  engine::EngineSpec spec;
  spec.multiprocessors = model.sms;
  spec.slice = static_cast<Nanoseconds>(model.timing.time_slice_ns);
  spec.switch_busy = static_cast<Nanoseconds>(model.timing.context_switch_ns);
  spec.kernel_start = static_cast<Nanoseconds>(model.timing.start_ns);
  spec.sample_period = static_cast<Nanoseconds>(model.timing.utilisation_period_ns);
  const auto latency = static_cast<Nanoseconds>(model.timing.copy_latency_ns);
  const double host = model.pcie.host_gbytes_per_s;
  const double memory_bytes_per_ns =
      static_cast<double>(model.memory.bus_bits) / 8 * 2 * model.clocks.memory_max_mhz / 1000.0;
  const double peer = model.nvlink.version == 0 ? host
                                                : static_cast<double>(model.nvlink.links) *
                                                      model.nvlink.link_mb_per_s / 1000.0;
  const auto lane = [&](engine::CopyLane which, double rate) {
    spec.copy[static_cast<std::size_t>(which)] = {std::max(rate, 0.1), latency};
  };
  lane(engine::CopyLane::kHostToDevice, host);
  lane(engine::CopyLane::kDeviceToHost, host);
  lane(engine::CopyLane::kDeviceToDevice, memory_bytes_per_ns / 2);  // read and written
  lane(engine::CopyLane::kPeer, peer);
  spec.fill_bytes_per_ns = std::max(memory_bytes_per_ns, 0.1);
  return spec;
}

struct Lane {
  engine::StreamId id;
  bool open = false;
  bool active = false;          // in active_lanes
  std::uint64_t base = 0;       // commands of earlier streams in this slot
  std::uint64_t submitted = 0;  // of this stream
  std::uint64_t published = 0;  // what take_ended() has told
};

struct Mark {
  std::uint32_t stream = 0;
  std::uint64_t seq = 0;
  Nanoseconds ended = -1;
};

struct ContextLanes {
  engine::ContextId id;
  std::vector<Lane> lanes;
  std::unordered_map<std::uint32_t, Mark> marks;                     // by event
  std::unordered_map<std::uint64_t, std::uint32_t> marks_in_flight;  // stream, seq -> event
};

std::uint64_t place(std::uint32_t stream, std::uint64_t seq) {
  return static_cast<std::uint64_t>(stream) << 48 ^ seq;
}

struct LaneName {
  ContextKey context = 0;
  std::uint32_t stream = 0;
};

std::uint64_t number(engine::StreamId id) {
  return static_cast<std::uint64_t>(id.generation) << 32 | id.slot;
}

bool valid_copy(std::uint64_t kind) { return kind <= static_cast<std::uint64_t>(CopyKind::kHost); }

engine::Work copy_work(std::uint64_t bytes, CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return engine::copy(engine::CopyLane::kHostToDevice, bytes);
    case CopyKind::kDeviceToHost:
      return engine::copy(engine::CopyLane::kDeviceToHost, bytes);
    case CopyKind::kDeviceToDevice:
      return engine::copy(engine::CopyLane::kDeviceToDevice, bytes);
    case CopyKind::kPeer:
      return engine::copy(engine::CopyLane::kPeer, bytes);
    case CopyKind::kHost:
      break;
  }
  return engine::marker();  // the host's own memory: nothing for the device to do
}

}  // namespace

struct Timeline::Impl {
  explicit Impl(const GpuModel& model) : engine(spec_of(model)) {}

  const Lane* lane(ContextKey context, std::uint32_t stream) const {
    const auto found = contexts.find(context);
    if (found == contexts.end() || stream >= found->second.lanes.size()) return nullptr;
    // Also one that is closed: its work may be outstanding.
    return &found->second.lanes[stream];
  }
  std::optional<engine::Eta> eta(ContextKey context, std::uint32_t stream,
                                 std::uint64_t seq) const {
    const Lane* found = lane(context, stream);
    if (found == nullptr) return std::nullopt;
    return engine.earliest(found->id, seq - std::min(seq, found->base));
  }
  bool open_lane(ContextKey key, ContextLanes& context, const Command& command);
  bool submit(ContextKey key, ContextLanes& context, const Command& command);
  bool work_of(const Command& command, engine::Work& work) const;
  void note_marks();

  engine::Engine engine;
  std::unordered_map<ContextKey, ContextLanes> contexts;
  std::unordered_map<std::uint64_t, LaneName> names;  // by the engine's stream
  std::vector<LaneName> active;                       // lanes with work outstanding
};

Timeline::Timeline(const GpuModel& model) : impl_(std::make_unique<Impl>(model)) {}
Timeline::~Timeline() = default;

void Timeline::open_context(ContextKey context, std::uint64_t session, Nanoseconds now,
                            std::optional<std::uint32_t> mps_percent) {
  engine::ContextSpec spec;
  spec.process = session;
  spec.mps = mps_percent.has_value();
  spec.active_thread_percent = mps_percent.value_or(100);
  impl_->contexts[context].id = impl_->engine.add_context(now, spec);
}

void Timeline::close_context(ContextKey context, Nanoseconds now) {
  const auto found = impl_->contexts.find(context);
  if (found == impl_->contexts.end()) return;
  for (const Lane& lane : found->second.lanes) impl_->names.erase(number(lane.id));
  std::erase_if(impl_->active, [&](const LaneName& name) { return name.context == context; });
  impl_->engine.remove_context(now, found->second.id);
  impl_->contexts.erase(found);
}

bool Timeline::Impl::open_lane(ContextKey key, ContextLanes& context, const Command& command) {
  const auto priority = static_cast<std::int64_t>(command.a[0]);
  if (command.stream >= kStreamSlots || priority > 0 || priority < -5) return false;
  if (command.stream >= context.lanes.size()) context.lanes.resize(command.stream + 1);
  Lane& lane = context.lanes[command.stream];
  if (lane.open || lane.active || command.a[1] < lane.published) return false;
  lane = {};
  lane.base = command.a[1];
  lane.published = lane.base;
  lane.id = engine.add_stream(context.id, static_cast<int>(priority));
  lane.open = true;
  names[number(lane.id)] = {key, command.stream};
  return true;
}

bool Timeline::Impl::work_of(const Command& command, engine::Work& work) const {
  const auto& a = command.a;
  switch (command.op) {
    case CommandOp::kLaunch:
      if (a[0] == 0 || a[0] > kMostBlocks || a[1] == 0 || a[1] > 64 || a[2] > kLongestBlockNs) {
        return false;
      }
      work = engine::grid_kernel(a[0], static_cast<std::uint16_t>(a[1]),
                                 static_cast<Nanoseconds>(a[2]));
      return true;
    case CommandOp::kCopy:
      if (a[0] > kMostBytes || !valid_copy(a[1])) return false;
      work = copy_work(a[0], static_cast<CopyKind>(a[1]));
      return true;
    case CommandOp::kFill:
      if (a[0] > kMostBytes) return false;
      work = engine::fill(a[0]);
      return true;
    case CommandOp::kWait: {
      // A stream that is gone has done all it will do.
      const Lane* other =
          a[1] < kStreamSlots ? lane(a[0], static_cast<std::uint32_t>(a[1])) : nullptr;
      work = other == nullptr ? engine::marker()
                              : engine::wait_for(other->id, a[2] - std::min(a[2], other->base));
      return true;
    }
    case CommandOp::kMark:
      work = engine::marker();
      work.notify_end = true;
      return true;
    case CommandOp::kHold:
      work = engine::hold();
      return true;
    default:
      return false;
  }
}

bool Timeline::Impl::submit(ContextKey key, ContextLanes& context, const Command& command) {
  Lane& lane = context.lanes[command.stream];
  engine::Work work;
  if (!work_of(command, work)) return false;
  if (command.op == CommandOp::kMark) {
    if (context.marks.size() >= kMostMarks) return false;
    const auto event = static_cast<std::uint32_t>(command.a[0]);
    context.marks[event] = {command.stream, command.seq, -1};
    context.marks_in_flight[place(command.stream, command.seq)] = event;
  }
  if (!lane.active) {
    lane.active = true;
    active.push_back({key, command.stream});
  }
  ++lane.submitted;
  if (lane.submitted - (lane.published - lane.base) > kMostOutstanding) return false;
  return lane.base + engine.submit(command.submitted_ns, lane.id, work) == command.seq;
}

bool Timeline::apply(ContextKey key, const Command& command) {
  const auto found = impl_->contexts.find(key);
  if (found == impl_->contexts.end()) return false;
  ContextLanes& context = found->second;
  if (command.op == CommandOp::kOpenStream) return impl_->open_lane(key, context, command);
  if (command.stream >= context.lanes.size()) return false;
  Lane& lane = context.lanes[command.stream];
  if (command.op == CommandOp::kLetGo) {
    impl_->engine.resolve(command.submitted_ns, lane.id,
                          command.a[0] - std::min(command.a[0], lane.base));
    return true;
  }
  if (!lane.open) return false;
  if (command.op == CommandOp::kCloseStream) {
    impl_->engine.retire_stream(command.submitted_ns, lane.id);
    lane.open = false;
    return true;
  }
  return impl_->submit(key, context, command);
}

void Timeline::let_go(ContextKey context, std::uint32_t stream, std::uint64_t seq, Nanoseconds at) {
  if (const Lane* lane = impl_->lane(context, stream)) {
    impl_->engine.resolve(at, lane->id, seq - std::min(seq, lane->base));
  }
}

void Timeline::advance(Nanoseconds to) { impl_->engine.advance(to); }

void Timeline::Impl::note_marks() {
  for (const engine::Notice& notice : engine.take_notices()) {
    if (notice.what != engine::Notice::What::kCompleted) continue;
    const auto name = names.find(number(notice.stream));
    if (name == names.end()) continue;
    ContextLanes& context = contexts[name->second.context];
    const std::uint64_t seq = notice.seq + context.lanes[name->second.stream].base;
    const auto flight = context.marks_in_flight.find(place(name->second.stream, seq));
    if (flight == context.marks_in_flight.end()) continue;
    Mark& mark = context.marks[flight->second];
    // Recorded again meanwhile: the later record counts.
    if (mark.stream == name->second.stream && mark.seq == seq) mark.ended = notice.time;
    context.marks_in_flight.erase(flight);
  }
}

std::vector<Ended> Timeline::take_ended() {
  impl_->note_marks();
  std::vector<Ended> ended;
  std::erase_if(impl_->active, [&](const LaneName& name) {
    Lane& lane = impl_->contexts[name.context].lanes[name.stream];
    // The engine forgets a retired stream once its work is done.
    const bool gone = !impl_->engine.stream_exists(lane.id);
    const std::uint64_t done =
        lane.base + (gone ? lane.submitted : impl_->engine.completed(lane.id));
    if (done > lane.published) {
      lane.published = done;
      ended.push_back({name.context, name.stream, done, impl_->engine.last_event()});
    }
    if (gone) impl_->names.erase(number(lane.id));
    if (gone || done == lane.base + lane.submitted) {
      lane.active = false;
      return true;
    }
    return false;
  });
  return ended;
}

std::uint64_t Timeline::done(ContextKey context, std::uint32_t stream) const {
  const Lane* lane = impl_->lane(context, stream);
  if (lane == nullptr) return UINT64_MAX;
  const bool gone = !impl_->engine.stream_exists(lane->id);
  return lane->base + (gone ? lane->submitted : impl_->engine.completed(lane->id));
}

std::optional<Nanoseconds> Timeline::mark(ContextKey context, const MarkRequest& request) const {
  const auto found = impl_->contexts.find(context);
  if (found == impl_->contexts.end()) return std::nullopt;
  const auto mark = found->second.marks.find(request.event);
  if (mark == found->second.marks.end() || mark->second.stream != request.stream ||
      mark->second.seq != request.seq || mark->second.ended < 0) {
    return std::nullopt;
  }
  return mark->second.ended;
}

std::optional<Nanoseconds> Timeline::earliest(ContextKey context, std::uint32_t stream,
                                              std::uint64_t seq) const {
  const auto eta = impl_->eta(context, stream, seq);
  if (!eta || eta->time == engine::kNever) return std::nullopt;
  return eta->time;
}

std::optional<Nanoseconds> Timeline::certain_end(ContextKey context, std::uint32_t stream,
                                                 std::uint64_t seq) const {
  const auto eta = impl_->eta(context, stream, seq);
  if (!eta || !eta->exact || eta->time == engine::kNever) return std::nullopt;
  return eta->time;
}

std::optional<Nanoseconds> Timeline::next_event() const {
  const Nanoseconds next = impl_->engine.next_event();
  if (next == engine::kNever) return std::nullopt;
  return next;
}

bool Timeline::idle() const { return impl_->active.empty(); }

Nanoseconds Timeline::busy(ContextKey context, Nanoseconds now) const {
  const auto found = impl_->contexts.find(context);
  return found == impl_->contexts.end() ? 0 : impl_->engine.busy(found->second.id, now);
}

const engine::Engine& Timeline::engine() const { return impl_->engine; }
engine::Engine& Timeline::engine() { return impl_->engine; }

}  // namespace aliquot::simdriver
