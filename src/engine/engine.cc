// Streams: order of work, waiting for each other, graphs, loss of a context.
#include "engine/engine.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace aliquot::engine {
namespace {

// A free slot, or a new one.
template <typename State>
std::uint32_t take_slot(std::vector<State>& states, std::vector<std::uint32_t>& free) {
  if (free.empty()) {
    states.emplace_back();
    return static_cast<std::uint32_t>(states.size() - 1);
  }
  const std::uint32_t slot = free.back();
  free.pop_back();
  const std::uint32_t generation = states[slot].generation;
  states[slot] = State{};
  states[slot].generation = generation + 1;
  return slot;
}

template <typename State, typename Id>
bool is_live(const std::vector<State>& states, Id id) {
  return id.slot < states.size() && states[id.slot].alive &&
         states[id.slot].generation == id.generation;
}

}  // namespace

Engine::Engine(const EngineSpec& spec)
    : spec_(spec), spaces_(1), device_log_(spec.sample_period), copy_log_(spec.sample_period) {
  assert(spec.multiprocessors > 0 && spec.slice > 0 && spec.sample_period > 0);
  spaces_[0].free_units = spec.multiprocessors * kUnitsPerSm;
}

Stream* Engine::find(StreamId id) { return is_live(streams_, id) ? &streams_[id.slot] : nullptr; }
const Stream* Engine::find(StreamId id) const {
  return is_live(streams_, id) ? &streams_[id.slot] : nullptr;
}
Context* Engine::find(ContextId id) {
  return is_live(contexts_, id) ? &contexts_[id.slot] : nullptr;
}
const Context* Engine::find(ContextId id) const {
  return is_live(contexts_, id) ? &contexts_[id.slot] : nullptr;
}

ContextId Engine::add_context(Nanoseconds now, const ContextSpec& spec) {
  advance(now);
  const std::uint32_t slot = take_slot(contexts_, free_contexts_);
  Context& context = contexts_[slot];
  context.alive = true;
  context.spec = spec;
  context.space = spec.mps ? 0 : slot + 1;
  context.limit_units = ceiling_units(spec);
  if (spaces_.size() < slot + 2) spaces_.resize(slot + 2);
  if (!spec.mps) {
    spaces_[slot + 1] = Space{};
    spaces_[slot + 1].free_units = spec_.multiprocessors * kUnitsPerSm;
  }
  // Logs of processes that ended long ago show in no sample any more.
  const Nanoseconds shown = spec_.sample_period * BusyLog::kBins;
  std::erase_if(processes_, [&](const auto& entry) {
    return entry.second.contexts == 0 && entry.second.since + shown < now_;
  });
  auto use = processes_.try_emplace(spec.process).first;
  if (use->second.contexts++ == 0 && use->second.log.total() == 0) {
    use->second.log = BusyLog(spec_.sample_period);
  }
  return {slot, context.generation};
}

void Engine::remove_context(Nanoseconds now, ContextId id) {
  advance(now);
  now_ = std::max(now_, now);
  Context* context = find(id);
  if (context == nullptr) return;
  vanish(*context);
  for (std::uint32_t slot = 0; slot < streams_.size(); ++slot) {
    if (streams_[slot].alive && streams_[slot].context == id) release_stream(slot);
  }
  const std::uint64_t process = context->spec.process;
  if (--processes_[process].contexts == 0)
    std::erase_if(switching_between_, [process](const auto& entry) {
      return entry.first.first == process || entry.first.second == process;
    });
  context->alive = false;
  free_contexts_.push_back(id.slot);
  // Nothing is loaded now: the next switch is free.
  if (current_ == id.slot + 1 && !switching_) current_ = kNoSpace;
  reschedule();
  settle();
}

StreamId Engine::add_stream(ContextId id, int priority) {
  if (find(id) == nullptr) return {};
  const std::uint32_t slot = take_slot(streams_, free_streams_);
  Stream& stream = streams_[slot];
  stream.alive = true;
  stream.priority = priority;
  stream.context = id;
  return {slot, stream.generation};
}

void Engine::retire_stream(Nanoseconds now, StreamId id) {
  advance(now);
  Stream* stream = find(id);
  if (stream == nullptr) return;
  stream->retiring = true;
  if (stream->items.empty()) release_stream(id.slot);
  settle();
}

void Engine::release_stream(std::uint32_t slot) {
  Stream& stream = streams_[slot];
  discard_work(stream);
  wake_waiters(stream, true);
  stream.alive = false;
  stream.items.clear();
  free_streams_.push_back(slot);
}

std::uint64_t Engine::submit(Nanoseconds now, StreamId id, const Work& work) {
  advance(now);
  now_ = std::max(now_, now);
  Stream* stream = find(id);
  if (stream == nullptr || stream->retiring) return 0;
  Context& context = contexts_[stream->context.slot];
  if (context.lost) return 0;
  if (work.kind == WorkKind::kGraph) {
    if (!is_live(graphs_, work.graph) || graphs_[work.graph.slot].dropped) return 0;
    ++graphs_[work.graph.slot].launches;
  }
  if (stream->items.empty()) {
    ++context.active_streams;
    ++active_streams_;
  }
  const Nanoseconds least = least_duration(context, work);
  stream->least_submitted += least;
  stream->uncertain_submitted += predictable(work) ? 0 : 1;
  const bool starts = work.kind == WorkKind::kKernel || work.kind == WorkKind::kFill;
  const Nanoseconds ready = now_ + spec_.kernel_start;
  stream->least_end = std::max(stream->least_end, starts ? ready : now_) + least;
  stream->items.push(
      {work, ready, stream->least_end, stream->least_submitted, stream->uncertain_submitted});
  const std::uint64_t seq = ++stream->submitted;
  if (stream->items.size() == 1) {
    pump(id.slot);
    settle();
  }
  return seq;
}

void Engine::resolve(Nanoseconds now, StreamId id, std::uint64_t seq, std::uint32_t node) {
  advance(now);
  now_ = std::max(now_, now);
  Stream* stream = find(id);
  if (stream == nullptr || seq != stream->completed + 1) return;
  if (node == kNoNode ? !stream->held
                      : node >= stream->graph.held.size() || !stream->graph.held[node]) {
    return;
  }
  if (node == kNoNode) {
    stream->held = false;
  } else {
    stream->graph.held[node] = false;
  }
  finished_.push_back({id.slot, node});
  settle();
}

std::uint64_t Engine::completed(StreamId id) const {
  const Stream* stream = find(id);
  return stream == nullptr ? 0 : stream->completed;
}

std::uint64_t Engine::submitted(StreamId id) const {
  const Stream* stream = find(id);
  return stream == nullptr ? 0 : stream->submitted;
}

bool Engine::stream_exists(StreamId id) const { return find(id) != nullptr; }

bool Engine::idle(ContextId id) const {
  const Context* context = find(id);
  return context == nullptr || context->active_streams == 0;
}

bool Engine::lost(ContextId id) const {
  const Context* context = find(id);
  return context == nullptr || context->lost;
}

std::vector<Notice> Engine::take_notices() { return std::exchange(notices_, {}); }

void Engine::notice(Notice::What what, Task task) {
  const Stream& stream = streams_[task.stream];
  const Work& head = stream.items.at(0).work;
  const WorkKind kind =
      task.node == kNoNode ? head.kind : graphs_[head.graph.slot].nodes[task.node].kind;
  notices_.push_back(
      {what, kind, {task.stream, stream.generation}, stream.completed + 1, task.node, now_});
}

// Runs until nothing more can happen at this moment. A work list, not recursion: a chain of
// streams that wait for each other may be as long as memory allows.
void Engine::settle() {
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    const Task task = finished_[i];
    finish(task);
  }
  finished_.clear();
}

// Begins the head, and what follows while it is complete at once.
void Engine::pump(std::uint32_t slot) {
  while (true) {
    Stream& stream = streams_[slot];
    if (!stream.alive || stream.begun || stream.items.empty()) return;
    stream.begun = true;
    stream.begun_at = now_;
    // A copy: begin() may make streams_' items move.
    const Work work = stream.items.front().work;
    if (!begin({slot, kNoNode}, work)) return;
    finish_item(streams_[slot]);
  }
}

// True if the work is complete at once.
bool Engine::begin(Task task, const Work& work) {
  switch (work.kind) {
    case WorkKind::kMarker:
      if (work.notify_end) notice(Notice::What::kCompleted, task);
      return true;
    case WorkKind::kKernel:
    case WorkKind::kFill:
      begin_kernel(task, work);
      return false;
    case WorkKind::kCopy:
      begin_copy(task, work);
      return false;
    case WorkKind::kWait:
      return begin_wait(task, work);
    case WorkKind::kHold: {
      Stream& stream = streams_[task.stream];
      if (task.node == kNoNode) {
        stream.held = true;
      } else {
        stream.graph.held[task.node] = true;
      }
      notice(Notice::What::kStarted, task);
      return false;
    }
    case WorkKind::kGraph:
      return begin_graph(task.stream, work);
  }
  return true;
}

bool Engine::begin_wait(Task task, const Work& work) {
  Stream* other = find(work.other);
  const bool done =
      other == nullptr || other->completed >= work.other_seq || contexts_[other->context.slot].lost;
  if (done) {
    if (work.notify_end) notice(Notice::What::kCompleted, task);
    return true;
  }
  other->waiters.push_back({work.other_seq, task, streams_[task.stream].generation});
  return false;
}

bool Engine::begin_graph(std::uint32_t slot, const Work& work) {
  const std::uint32_t graph_slot = work.graph.slot;
  {
    const GraphState& graph = graphs_[graph_slot];
    Stream& stream = streams_[slot];
    stream.graph.missing = graph.missing;
    stream.graph.left = static_cast<std::uint32_t>(graph.nodes.size());
    stream.graph.held.assign(graph.nodes.size(), false);
    if (graph.nodes.empty()) {
      if (work.notify_end) notice(Notice::What::kCompleted, {slot, kNoNode});
      return true;
    }
  }
  for (std::uint32_t node = 0; node < graphs_[graph_slot].nodes.size(); ++node) {
    if (graphs_[graph_slot].missing[node] != 0) continue;
    if (begin({slot, node}, graphs_[graph_slot].nodes[node])) finished_.push_back({slot, node});
  }
  return false;
}

void Engine::finish(Task task) {
  Stream& stream = streams_[task.stream];
  if (!stream.alive || !stream.begun) return;
  if (task.node != kNoNode) {
    finish_node(task);
    return;
  }
  const Work& work = stream.items.front().work;
  if (work.notify_end) notice(Notice::What::kCompleted, task);
  finish_item(stream);
  pump(task.stream);
}

void Engine::finish_node(Task task) {
  Stream& stream = streams_[task.stream];
  const Work head = stream.items.front().work;
  const std::uint32_t slot = head.graph.slot;
  const Work& done = graphs_[slot].nodes[task.node];
  if (done.notify_end && done.kind != WorkKind::kMarker) notice(Notice::What::kCompleted, task);
  for (std::uint32_t i = graphs_[slot].first_next[task.node];
       i < graphs_[slot].first_next[task.node + 1]; ++i) {
    const std::uint32_t node = graphs_[slot].next[i];
    if (--streams_[task.stream].graph.missing[node] != 0) continue;
    if (begin({task.stream, node}, graphs_[slot].nodes[node])) {
      finished_.push_back({task.stream, node});
    }
  }
  if (--streams_[task.stream].graph.left == 0) {
    if (head.notify_end) notice(Notice::What::kCompleted, {task.stream, kNoNode});
    finish_item(streams_[task.stream]);
    pump(task.stream);
  }
}

// The head is complete: the next becomes the head, but is not begun.
void Engine::finish_item(Stream& stream) {
  const Work& work = stream.items.front().work;
  if (work.kind == WorkKind::kGraph) drop_reference(work.graph.slot);
  stream.items.pop();
  ++stream.completed;
  stream.begun = false;
  if (stream.items.empty()) {
    --active_streams_;
    --contexts_[stream.context.slot].active_streams;
  }
  if (!stream.waiters.empty()) wake_waiters(stream, false);
  if (stream.retiring && stream.items.empty()) {
    release_stream(static_cast<std::uint32_t>(&stream - streams_.data()));
  }
}

void Engine::wake_waiters(Stream& stream, bool all) {
  std::erase_if(stream.waiters, [&](const Waiter& waiter) {
    if (!all && waiter.until > stream.completed) return false;
    if (streams_[waiter.task.stream].generation == waiter.generation) {
      finished_.push_back(waiter.task);
    }
    return true;
  });
}

// Forgets what is queued and running; `completed` stays.
void Engine::discard_work(Stream& stream) {
  if (stream.items.empty()) return;
  for (std::size_t i = 0; i < stream.items.size(); ++i) {
    const Work& work = stream.items.at(i).work;
    if (work.kind == WorkKind::kGraph) drop_reference(work.graph.slot);
  }
  stream.items.clear();
  stream.graph = {};
  stream.begun = stream.held = false;
  --active_streams_;
  --contexts_[stream.context.slot].active_streams;
}

void Engine::vanish(Context& context) {
  const auto slot = static_cast<std::uint32_t>(&context - contexts_.data());
  const ContextId id{slot, context.generation};
  discard_grids(spaces_[context.space], slot);
  discard_copies(slot);
  // A wait of the dead is no waiter any more; those who wait for the dead go on.
  for (Stream& stream : streams_) {
    std::erase_if(stream.waiters,
                  [&](const Waiter& waiter) { return streams_[waiter.task.stream].context == id; });
  }
  for (Stream& stream : streams_) {
    if (!stream.alive || stream.context != id) continue;
    discard_work(stream);
    wake_waiters(stream, true);
  }
}

void Engine::fail_context(Nanoseconds now, ContextId id, std::uint32_t xid) {
  advance(now);
  now_ = std::max(now_, now);
  Context* context = find(id);
  if (context == nullptr || context->lost) return;
  context->lost = true;
  xids_.push_back({now_, xid, context->spec.process});
  vanish(*context);
  reschedule();
  settle();
}

void Engine::fail_device(Nanoseconds now, std::uint32_t xid) {
  advance(now);
  now_ = std::max(now_, now);
  xids_.push_back({now_, xid, 0});
  for (Context& context : contexts_) {
    if (!context.alive || context.lost) continue;
    context.lost = true;
    vanish(context);
  }
  reschedule();
  settle();
}

Result<GraphId> Engine::define_graph(const Graph& graph) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (graph.nodes[i].work.kind == WorkKind::kGraph) {
      return Error{Errc::kInvalid, "define graph: a node is itself a graph; flatten it"};
    }
    for (const std::uint32_t before : graph.nodes[i].after) {
      if (before >= i) {
        return Error{Errc::kInvalid, "define graph: node " + std::to_string(i) +
                                         " waits for a later one; sort the nodes"};
      }
    }
  }
  const std::uint32_t slot = take_slot(graphs_, free_graphs_);
  GraphState& state = graphs_[slot];
  state.alive = true;
  state.missing.assign(count, 0);
  state.first_next.assign(count + 1, 0);
  for (const Graph::Node& node : graph.nodes) {
    state.nodes.push_back(node.work);
    for (const std::uint32_t before : node.after) ++state.first_next[before + 1];
  }
  for (std::uint32_t i = 0; i < count; ++i) state.first_next[i + 1] += state.first_next[i];
  state.next.resize(state.first_next[count]);
  std::vector<std::uint32_t> filled = state.first_next;
  for (std::uint32_t i = 0; i < count; ++i) {
    state.missing[i] = static_cast<std::uint32_t>(graph.nodes[i].after.size());
    for (const std::uint32_t before : graph.nodes[i].after) state.next[filled[before]++] = i;
  }
  return GraphId{slot, state.generation};
}

void Engine::drop_graph(GraphId id) {
  if (!is_live(graphs_, id) || graphs_[id.slot].dropped) return;
  graphs_[id.slot].dropped = true;
  ++graphs_[id.slot].launches;
  drop_reference(id.slot);
}

void Engine::drop_reference(std::uint32_t slot) {
  GraphState& graph = graphs_[slot];
  if (--graph.launches != 0 || !graph.dropped) return;
  graph.alive = false;
  free_graphs_.push_back(slot);
}

}  // namespace aliquot::engine
