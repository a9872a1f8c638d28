// Kernels on the multiprocessors, and the turns that spaces take.
//
// A kernel is a grid of equal blocks. What fits is issued as one batch that ends together; when a
// batch ends its room goes to the first grid in order of dispatch that still has blocks, so a grid
// alone runs in waves and the next grid fills what its last wave leaves. Batches end in the space's
// run time. A very long grid issues several waves as one batch (at most 64 batches a grid in the
// plain case), which only delays a kernel of higher priority by that much.
#include <algorithm>
#include <cassert>

#include "engine/engine.h"

namespace aliquot::engine {
namespace {

constexpr std::uint64_t kBatchesAGrid = 64;

bool ends_later(const Batch& a, const Batch& b) {
  return a.end_run != b.end_run ? a.end_run > b.end_run : a.order > b.order;
}

}  // namespace

// Rounded up to whole TPCs (two multiprocessors), as the active thread percentage of MPS is.
std::uint64_t Engine::ceiling_units(const ContextSpec& spec) const {
  const std::uint64_t all = spec_.multiprocessors;
  if (!spec.mps || spec.active_thread_percent >= 100) return all * kUnitsPerSm;
  const std::uint64_t exact = (all * spec.active_thread_percent + 99) / 100;
  return std::clamp<std::uint64_t>((exact + 1) / 2 * 2, 1, all) * kUnitsPerSm;
}

void Engine::set_active_thread_percent(ContextId id, std::uint32_t percent) {
  Context* context = find(id);
  if (context == nullptr) return;
  context->spec.active_thread_percent = percent;
  context->limit_units = ceiling_units(context->spec);
}

void Engine::begin_kernel(Task task, const Work& work) {
  Stream& stream = streams_[task.stream];
  const std::uint32_t context_slot = stream.context.slot;
  const Context& context = contexts_[context_slot];
  Space& space = spaces_[context.space];
  std::uint32_t index = 0;
  if (space.free_grids.empty()) {
    index = static_cast<std::uint32_t>(space.grids.size());
    space.grids.emplace_back();
  } else {
    index = space.free_grids.back();
    space.free_grids.pop_back();
  }
  const BlockShape shape = shape_of(context, work);
  space.grids[index] = {.task = task,
                        .context = context_slot,
                        .priority = stream.priority,
                        .arrival = ++arrivals_,
                        .unissued = shape.blocks,
                        .block_units = shape.units,
                        .waves_at_once = 1,
                        .block_ns = shape.block_ns,
                        .ready = stream.items.front().ready,
                        .notify_start = work.notify_start};
  const std::uint64_t waves = shape.blocks / (context.limit_units / shape.units);
  if (waves > kBatchesAGrid) space.grids[index].waves_at_once = waves / kBatchesAGrid;
  if (task.node == kNoNode) {
    stream.begun_run = run_now(space);
    stream.start_left = 0;
  }
  enter(space, index);
}

BlockShape Engine::shape_of(const Context& context, const Work& work) const {
  if (work.kind == WorkKind::kFill) {
    const auto ns =
        static_cast<Nanoseconds>(static_cast<double>(work.bytes) / spec_.fill_bytes_per_ns);
    return {1, context.limit_units, std::max<Nanoseconds>(ns, 1)};
  }
  BlockShape shape{std::max<std::uint64_t>(work.blocks, 1), 0,
                   std::max<Nanoseconds>(work.block_ns, 0)};
  if (work.blocks_per_sm > 0) {
    shape.units = kUnitsPerSm / work.blocks_per_sm;
  } else {
    const std::uint32_t all = spec_.multiprocessors;
    shape.units = (work.sms_per_block == 0 ? all : std::min(work.sms_per_block, all)) * kUnitsPerSm;
  }
  if (shape.units > context.limit_units) {
    // Fewer multiprocessors than the kernel was timed on: the same work takes longer.
    shape.block_ns = static_cast<Nanoseconds>(static_cast<double>(shape.block_ns) *
                                              static_cast<double>(shape.units) /
                                              static_cast<double>(context.limit_units));
    shape.units = context.limit_units;
  }
  return shape;
}

void Engine::enter(Space& space, std::uint32_t index) {
  const Grid& grid = space.grids[index];
  auto place = space.waiting.end();
  while (place != space.waiting.begin() && space.grids[*(place - 1)].priority > grid.priority) {
    --place;
  }
  space.waiting.insert(place, index);
  if (space.live_grids++ == 0) ++ready_spaces_;
  const auto number = static_cast<std::uint32_t>(&space - spaces_.data());
  if (number == current_ && !switching_) {
    // Inside compute_event() the dispatch follows once all that ended now is known.
    if (!completing_) after_change(space);
  } else if (!completing_) {
    reschedule();
  }
}

Nanoseconds Engine::run_now(const Space& space) const {
  return space.clock_on ? space.run + (now_ - space.on_since) : space.run;
}

// Issues what fits, in order. A grid that its context's ceiling stops lets others pass.
void Engine::dispatch(Space& space) {
  std::size_t i = 0;
  while (i < space.waiting.size()) {
    const std::uint32_t index = space.waiting[i];
    Grid& grid = space.grids[index];
    if (!grid.started && space.resident >= spec_.resident_grids) return;
    const Context& context = contexts_[grid.context];
    const std::uint64_t allowed =
        context.limit_units > context.used_units ? context.limit_units - context.used_units : 0;
    const bool own_ceiling = allowed < space.free_units;
    const std::uint64_t fits = std::min(allowed, space.free_units) / grid.block_units;
    if (fits > 0) issue(space, index, fits);
    if (space.grids[index].unissued == 0) {
      space.waiting.erase(space.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (own_ceiling) {
      ++i;
    } else {
      return;
    }
  }
}

// Issues up to `at_once` blocks side by side, several waves of them if many are left.
void Engine::issue(Space& space, std::uint32_t index, std::uint64_t at_once) {
  Grid& grid = space.grids[index];
  Context& context = contexts_[grid.context];
  std::uint64_t side_by_side = grid.unissued;
  std::uint64_t waves = 1;
  if (grid.unissued > at_once) {
    side_by_side = at_once;
    waves = std::clamp<std::uint64_t>(grid.unissued / at_once, 1, grid.waves_at_once);
  }
  Nanoseconds duration = grid.block_ns * static_cast<Nanoseconds>(waves);
  if (!grid.started) {
    grid.started = true;
    const Nanoseconds start_left = std::max<Nanoseconds>(0, grid.ready - now_);
    duration += start_left;
    if (grid.task.node == kNoNode) streams_[grid.task.stream].start_left = start_left;
    ++space.resident;
    if (context.running_grids++ == 0) start_busy(context);
    if (grid.notify_start) notice(Notice::What::kStarted, grid.task);
  }
  grid.unissued -= side_by_side * waves;
  ++grid.batches;
  const std::uint64_t units = side_by_side * grid.block_units;
  space.free_units -= units;
  context.used_units += units;
  space.batches.push_back({run_now(space) + duration, ++arrivals_, index, units});
  std::push_heap(space.batches.begin(), space.batches.end(), ends_later);
}

// Frees what has ended by now; a grid whose last batch that was is complete.
void Engine::complete_batches(Space& space_now) {
  const auto number = static_cast<std::uint32_t>(&space_now - spaces_.data());
  const Nanoseconds run = run_now(space_now);
  completing_ = true;
  while (true) {
    Space& space = spaces_[number];
    if (space.batches.empty() || space.batches.front().end_run > run) break;
    const Batch batch = space.batches.front();
    std::pop_heap(space.batches.begin(), space.batches.end(), ends_later);
    space.batches.pop_back();
    Grid& grid = space.grids[batch.grid];
    Context& context = contexts_[grid.context];
    space.free_units += batch.units;
    context.used_units -= batch.units;
    if (--grid.batches > 0 || grid.unissued > 0) continue;
    const Task task = grid.task;
    --space.resident;
    if (--context.running_grids == 0) maybe_idle_.push_back(grid.context);
    space.free_grids.push_back(batch.grid);
    if (--space.live_grids == 0) --ready_spaces_;
    finish(task);
  }
  settle();
  completing_ = false;
}

// The current space has grids more or fewer: issue, keep the run clock right, give up the turn.
void Engine::after_change(Space& space) {
  dispatch(space);
  if (!space.batches.empty() && !space.clock_on) clock_on(space);
  if (space.batches.empty() && space.clock_on) clock_off(space);
  close_idle_contexts();
  reschedule();
}

void Engine::close_idle_contexts() {
  for (const std::uint32_t slot : maybe_idle_) {
    if (contexts_[slot].running_grids == 0) stop_busy(contexts_[slot]);
  }
  maybe_idle_.clear();
}

void Engine::clock_on(Space& space) {
  space.clock_on = true;
  space.on_since = now_;
  // Alone on an idle device a fresh slice begins; beside others the running one goes on.
  if (ready_spaces_ <= 1) slice_start_ = now_;
}

void Engine::clock_off(Space& space) {
  space.run = run_now(space);
  device_log_.add(space.on_since, now_);
  space.clock_on = false;
}

void Engine::start_busy(Context& context) {
  if (context.counting) return;
  context.counting = true;
  context.busy_since = now_;
  ProcessUse& use = processes_[context.spec.process];
  if (use.counting++ == 0) use.since = now_;
}

void Engine::stop_busy(Context& context) {
  if (!context.counting) return;
  context.counting = false;
  context.busy_total += now_ - context.busy_since;
  ProcessUse& use = processes_[context.spec.process];
  if (--use.counting == 0) {
    use.log.add(use.since, now_);
    use.since = now_;
  }
}

// Decides whether the turn passes on, and until when the slice lasts.
void Engine::reschedule() {
  if (switching_ || completing_) return;
  if (current_ != kNoSpace && spaces_[current_].live_grids > 0) {
    if (ready_spaces_ < 2) {
      slice_end_ = kNever;
    } else if (slice_end_ == kNever) {
      const Nanoseconds used = now_ - slice_start_;
      slice_end_ = slice_start_ +
                   std::max<Nanoseconds>(1, (used + spec_.slice - 1) / spec_.slice) * spec_.slice;
    }
    return;
  }
  slice_end_ = kNever;
  const std::uint32_t next = next_ready();
  if (next != kNoSpace) switch_to(next, current_ == kNoSpace ? 0 : spec_.switch_idle);
}

std::uint32_t Engine::next_ready() const {
  const auto count = static_cast<std::uint32_t>(spaces_.size());
  const std::uint32_t from = current_ == kNoSpace ? count - 1 : current_;
  for (std::uint32_t i = 1; i <= count; ++i) {
    const std::uint32_t space = (from + i) % count;
    if (spaces_[space].live_grids > 0) return space;
  }
  return kNoSpace;
}

void Engine::switch_to(std::uint32_t number, Nanoseconds cost) {
  if (current_ != kNoSpace) {
    Space& left = spaces_[current_];
    if (left.clock_on) clock_off(left);
    for (Context& context : contexts_) {
      if (context.counting && context.space == current_) stop_busy(context);
    }
  }
  if (cost > 0) {
    last_switch_ = {current_ - 1, number - 1, cost};  // space 0 is MPS: UINT32_MAX
    if (current_ != 0 && number != 0)
      switching_between_[{contexts_[current_ - 1].spec.process,
                          contexts_[number - 1].spec.process}] += cost;
  }
  current_ = number;
  slice_end_ = kNever;
  if (cost > 0) {
    ++switches_;
    switching_ = true;
    switching_total_ += cost;
    switch_end_ = now_ + cost;
    return;
  }
  arrive();
}

// The switch is over: the space runs on where it was stopped.
void Engine::arrive() {
  switching_ = false;
  switch_end_ = kNever;
  slice_start_ = now_;
  Space& space = spaces_[current_];
  for (Context& context : contexts_) {
    if (context.running_grids > 0 && context.space == current_) start_busy(context);
  }
  after_change(space);
}

Nanoseconds Engine::next_compute() const {
  if (switching_) return switch_end_;
  if (current_ == kNoSpace || !spaces_[current_].clock_on) return kNever;
  const Space& space = spaces_[current_];
  return std::min(space.on_since + (space.batches.front().end_run - space.run), slice_end_);
}

void Engine::compute_event() {
  if (switching_) {
    arrive();
    return;
  }
  const std::uint32_t number = current_;
  complete_batches(spaces_[number]);
  after_change(spaces_[number]);
  if (slice_end_ <= now_ && ready_spaces_ > 1 && !switching_) {
    ++preemptions_;
    switch_to(next_ready(), spec_.switch_busy);
  }
}

void Engine::discard_grids(Space& space, std::uint32_t context_slot) {
  Context& context = contexts_[context_slot];
  std::vector<bool> of_context(space.grids.size(), false);
  for (std::uint32_t i = 0; i < space.grids.size(); ++i) {
    of_context[i] = space.grids[i].context == context_slot;
  }
  for (const std::uint32_t free : space.free_grids) of_context[free] = false;
  std::erase_if(space.waiting, [&](std::uint32_t grid) { return of_context[grid]; });
  std::erase_if(space.batches, [&](const Batch& batch) {
    if (!of_context[batch.grid]) return false;
    space.free_units += batch.units;
    return true;
  });
  std::make_heap(space.batches.begin(), space.batches.end(), ends_later);
  for (std::uint32_t i = 0; i < of_context.size(); ++i) {
    if (!of_context[i]) continue;
    if (space.grids[i].started) --space.resident;
    space.free_grids.push_back(i);
    if (--space.live_grids == 0) --ready_spaces_;
  }
  context.used_units = 0;
  context.running_grids = 0;
  stop_busy(context);
  const auto number = static_cast<std::uint32_t>(&space - spaces_.data());
  if (number == current_ && !switching_) {
    // What is left of an MPS space takes the room at once.
    if (space.clock_on && space.batches.empty()) clock_off(space);
    after_change(space);
  }
}

}  // namespace aliquot::engine
