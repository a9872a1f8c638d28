// When can a place in a stream be complete at the earliest?
//
// Each item knows the sum of least durations of its stream up to it, and when it would end if
// nothing but its own stream held it up, so the bound costs two subtractions and a comparison.
// Alone with one busy stream of kernels and copies that bound is the truth. With several streams of
// one context a copy of the engine runs ahead, if little is outstanding.
#include <algorithm>

#include "engine/engine.h"

namespace aliquot::engine {
namespace {

constexpr std::size_t kLookAheadItems = 2048;

}  // namespace

bool Engine::predictable(const Work& work) const {
  return work.kind == WorkKind::kKernel || work.kind == WorkKind::kFill ||
         work.kind == WorkKind::kCopy || work.kind == WorkKind::kMarker;
}

Nanoseconds Engine::least_duration(const Context& context, const Work& work) const {
  switch (work.kind) {
    case WorkKind::kKernel:
    case WorkKind::kFill: {
      const BlockShape shape = shape_of(context, work);
      const std::uint64_t at_once = context.limit_units / shape.units;
      const auto waves = static_cast<Nanoseconds>((shape.blocks + at_once - 1) / at_once);
      return waves * shape.block_ns;
    }
    case WorkKind::kCopy:
      return copy_duration(work);
    case WorkKind::kGraph: {
      // The longest path; nodes stand in an order in which predecessors come first.
      const GraphState& graph = graphs_[work.graph.slot];
      std::vector<Nanoseconds> start(graph.nodes.size(), 0);
      Nanoseconds longest = 0;
      for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Nanoseconds end = start[i] + least_duration(context, graph.nodes[i]);
        longest = std::max(longest, end);
        for (std::uint32_t n = graph.first_next[i]; n < graph.first_next[i + 1]; ++n) {
          start[graph.next[n]] = std::max(start[graph.next[n]], end);
        }
      }
      return longest;
    }
    case WorkKind::kMarker:
    case WorkKind::kWait:
    case WorkKind::kHold:
      return 0;
  }
  return 0;
}

// Least time that the head still takes.
Nanoseconds Engine::head_left(const Stream& stream) const {
  const Item& head = stream.items.at(0);
  const Context& context = contexts_[stream.context.slot];
  const Nanoseconds least = least_duration(context, head.work);
  const bool kernel = head.work.kind == WorkKind::kKernel || head.work.kind == WorkKind::kFill;
  const Nanoseconds gone =
      kernel ? run_now(spaces_[context.space]) - stream.begun_run : now_ - stream.begun_at;
  return std::max<Nanoseconds>(0, least + (kernel ? stream.start_left : 0) - gone);
}

Eta Engine::earliest(StreamId id, std::uint64_t seq) const {
  const Stream* stream = find(id);
  if (stream == nullptr || stream->completed >= seq) return {now_, true};
  if (seq > stream->submitted) return {now_, false};
  const Item& head = stream->items.at(0);
  const Item& item = stream->items.at(static_cast<std::size_t>(seq - stream->completed - 1));
  const Context& context = contexts_[stream->context.slot];
  // Either the head holds it up, or one behind it that is not ready when its turn comes.
  const Nanoseconds bound =
      std::max(now_ + head_left(*stream) + (item.least_until - head.least_until), item.least_end);
  if (context.active_streams < active_streams_) return {bound, false};
  const bool certain = predictable(head.work) && item.uncertain_until == head.uncertain_until;
  const bool loaded = current_ == context.space && !switching_;
  if (certain && loaded && active_streams_ == 1) return {bound, true};
  const Eta seen = look_ahead(id, seq);
  return seen.exact ? seen : Eta{bound, false};
}

// Runs a copy of this engine until the item is complete, if that is cheap enough to do.
Eta Engine::look_ahead(StreamId id, std::uint64_t seq) const {
  std::size_t outstanding = 0;
  for (const Stream& stream : streams_) {
    if (stream.alive) outstanding += stream.items.size();
  }
  if (outstanding > kLookAheadItems) return {};
  Engine copy = *this;
  while (copy.completed(id) < seq) {
    const Nanoseconds next = copy.next_event();
    if (next == kNever) return {};  // a hold: only the host knows
    copy.advance(next);
  }
  return {copy.now_, true};
}

}  // namespace aliquot::engine
