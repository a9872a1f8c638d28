// Engine: one GPU (or one MIG instance) as a pure discrete-event model: state, event, time.
//
// It knows contexts, streams and work as durations; it leaves memory, effects of kernels on data,
// latencies of the host and real time to others. Nothing here reads a clock, sleeps, locks or does
// I/O; use it from one thread at a time. It is a value: a copy runs on by itself (how earliest()
// looks ahead).
//
// Time. Every call that carries a time first runs all events up to it. The engine's own time is
// that of the last event or submission: a time stamp from before it counts as that moment, a later
// one is taken as it is, so a server that drains its queues late still computes the true times as
// long as nothing happened on the device in between.
//
// Model. Kernels of one context (or of all MPS contexts: one "space") run side by side as their
// blocks find room: a kernel's blocks are issued only when all blocks of the kernels before it
// are (leftover policy), streams of higher priority first. Spaces take turns in slices, round
// robin over those with kernels ready, and a switch costs time. Each space has a run clock that
// only moves while it is current, so a switch touches no kernel. Copies run on one engine a
// direction, first come first served over all contexts, beside the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/result.h"
#include "engine/busy_log.h"
#include "engine/state.h"
#include "engine/work.h"

namespace aliquot::engine {

class Engine {
 public:
  explicit Engine(const EngineSpec& spec);

  ContextId add_context(Nanoseconds now, const ContextSpec& spec);
  // Its streams and their work vanish; whoever waited for them goes on.
  void remove_context(Nanoseconds now, ContextId context);

  // Smaller numbers go first (0 is the default, CUDA's range is 0 to -5).
  StreamId add_stream(ContextId context, int priority = 0);
  // Gone once what was submitted has run; the id is invalid for new work at once.
  void retire_stream(Nanoseconds now, StreamId stream);

  // Checks the order of the nodes. The graph lives until dropped and its last launch is complete.
  Result<GraphId> define_graph(const Graph& graph);
  void drop_graph(GraphId graph);

  // The item's number in its stream (from 1), 0 if the stream or its context is gone or lost.
  std::uint64_t submit(Nanoseconds now, StreamId stream, const Work& work);
  // The host's side of a hold (item `seq`, or node `node` of the graph there) is done.
  void resolve(Nanoseconds now, StreamId stream, std::uint64_t seq, std::uint32_t node = kNoNode);

  void advance(Nanoseconds to);
  // When something happens next if nothing is submitted; kNever if nothing will.
  Nanoseconds next_event() const;
  // Time of the last event or submission.
  Nanoseconds last_event() const { return now_; }

  // All items up to this number are complete. 0 for a stream that is gone.
  std::uint64_t completed(StreamId stream) const;
  std::uint64_t submitted(StreamId stream) const;
  bool stream_exists(StreamId stream) const;
  // Nothing submitted to the context is outstanding.
  bool idle(ContextId context) const;
  // No earlier than this (stream, seq) can be complete: exact while no other context has work
  // outstanding, else the context's own remaining work.
  Eta earliest(StreamId stream, std::uint64_t seq) const;
  // What has happened since the last call, in order of time.
  std::vector<Notice> take_notices();

  // The context is lost: its work vanishes, submissions are refused until it is removed.
  void fail_context(Nanoseconds now, ContextId context, std::uint32_t xid);
  // All contexts are lost.
  void fail_device(Nanoseconds now, std::uint32_t xid);
  bool lost(ContextId context) const;
  const std::vector<XidRecord>& xids() const { return xids_; }

  // Device time up to `now` in which the context had a kernel running.
  Nanoseconds busy(ContextId context, Nanoseconds now) const;
  Nanoseconds device_busy(Nanoseconds now) const;
  Nanoseconds copy_busy(CopyLane lane, Nanoseconds now) const;
  Nanoseconds switching() const { return switching_total_; }
  std::uint64_t switches() const { return switches_; }
  // The last switch that cost time; contexts by slot (UINT32_MAX: the MPS clients or none).
  const Switch& last_switch() const { return last_switch_; }
  // What switches cost, from one process to the other, of those that are still here.
  const std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds>& switching_between() const {
    return switching_between_;
  }
  std::uint64_t preemptions() const { return preemptions_; }

  // Samples that a reader at `now` can see (period and lag of the spec), after `since`, oldest
  // first. device: any kernel running; memory: any copy running; processes: only non-zero ones.
  std::vector<UtilisationSample> device_samples(Nanoseconds since, Nanoseconds now) const;
  std::vector<UtilisationSample> memory_samples(Nanoseconds since, Nanoseconds now) const;
  std::vector<ProcessSample> process_samples(Nanoseconds since, Nanoseconds now) const;

  const EngineSpec& spec() const { return spec_; }
  void set_slice(Nanoseconds slice) { spec_.slice = slice; }
  void set_active_thread_percent(ContextId context, std::uint32_t percent);

 private:
  // Streams (engine.cc).
  Stream* find(StreamId id);
  const Stream* find(StreamId id) const;
  const Context* find(ContextId id) const;
  Context* find(ContextId id);
  void settle();
  void pump(std::uint32_t slot);
  bool begin(Task task, const Work& work);
  bool begin_wait(Task task, const Work& work);
  bool begin_graph(std::uint32_t slot, const Work& work);
  void finish_item(Stream& stream);
  void finish_node(Task task);
  void finish(Task task);
  void wake_waiters(Stream& stream, bool all);
  void discard_work(Stream& stream);
  void release_stream(std::uint32_t slot);
  void drop_reference(std::uint32_t graph_slot);
  void vanish(Context& context);
  void notice(Notice::What what, Task task);

  // Lower bounds (engine_eta.cc).
  Nanoseconds least_duration(const Context& context, const Work& work) const;
  bool predictable(const Work& work) const;
  Nanoseconds head_left(const Stream& stream) const;
  Eta look_ahead(StreamId stream, std::uint64_t seq) const;

  // Kernels and slices (engine_spaces.cc).
  void begin_kernel(Task task, const Work& work);
  void enter(Space& space, std::uint32_t grid);
  void dispatch(Space& space);
  void issue(Space& space, std::uint32_t grid, std::uint64_t at_once);
  void compute_event();
  void complete_batches(Space& space);
  void after_change(Space& space);
  void close_idle_contexts();
  void clock_on(Space& space);
  void clock_off(Space& space);
  void reschedule();
  void switch_to(std::uint32_t space, Nanoseconds cost);
  void arrive();
  BlockShape shape_of(const Context& context, const Work& work) const;
  std::uint32_t next_ready() const;
  void discard_grids(Space& space, std::uint32_t context);
  Nanoseconds run_now(const Space& space) const;
  Nanoseconds next_compute() const;
  void start_busy(Context& context);
  void stop_busy(Context& context);
  std::uint64_t ceiling_units(const ContextSpec& spec) const;

  // Copies (engine_copies.cc).
  void begin_copy(Task task, const Work& work);
  void start_copy(std::size_t lane);
  void copy_event(std::size_t lane);
  void discard_copies(std::uint32_t context);
  Nanoseconds copy_duration(const Work& work) const;

  EngineSpec spec_;
  Nanoseconds now_ = 0;
  std::vector<Context> contexts_;
  std::vector<std::uint32_t> free_contexts_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> free_streams_;
  std::vector<GraphState> graphs_;
  std::vector<std::uint32_t> free_graphs_;
  std::vector<Task> finished_;
  std::vector<Notice> notices_;
  std::vector<XidRecord> xids_;
  std::uint32_t active_streams_ = 0;

  std::vector<Space> spaces_;  // [0] MPS; [1 + slot] the context's own
  std::uint32_t ready_spaces_ = 0;
  std::uint32_t current_ = kNoSpace;
  bool switching_ = false;
  bool completing_ = false;  // inside complete_batches(): dispatch once, at its end
  Nanoseconds switch_end_ = kNever;
  Nanoseconds slice_start_ = 0;
  Nanoseconds slice_end_ = kNever;
  std::uint64_t arrivals_ = 0;
  std::vector<std::uint32_t> maybe_idle_;  // contexts whose last kernel just ended

  std::array<Lane, kCopyLanes> lanes_;

  BusyLog device_log_;
  BusyLog copy_log_;
  std::map<std::uint64_t, ProcessUse> processes_;
  Nanoseconds switching_total_ = 0;
  std::uint64_t switches_ = 0;
  Switch last_switch_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> switching_between_;
  std::uint64_t preemptions_ = 0;
};

}  // namespace aliquot::engine
