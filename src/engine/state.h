// The Engine's own parts: streams, contexts, spaces, copy lanes. Included by engine.h only.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/busy_log.h"
#include "engine/work.h"

namespace aliquot::engine {

inline constexpr std::uint32_t kNoSpace = UINT32_MAX;

// Room on the multiprocessors is counted in parts of one: fine enough that n blocks of 1/n fit.
inline constexpr std::uint64_t kUnitsPerSm = 1u << 20;

// Where a piece of work belongs: the item at the head of a stream, or a node of the graph there.
struct Task {
  std::uint32_t stream = 0;
  std::uint32_t node = kNoNode;
};

struct Item {
  Work work;
  Nanoseconds ready = 0;              // a kernel's blocks can run from then on
  Nanoseconds least_end = 0;          // not complete before, as seen when it was submitted
  Nanoseconds least_until = 0;        // least durations summed over the stream up to this item
  std::uint32_t uncertain_until = 0;  // items up to this one whose end depends on others
};

// FIFO in a power-of-two array, so that a long queue costs nothing but its items.
class ItemRing {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  Item& front() { return items_[first_]; }
  const Item& at(std::size_t i) const { return items_[(first_ + i) & (items_.size() - 1)]; }
  void push(const Item& item) {
    if (count_ == items_.size()) grow();
    items_[(first_ + count_++) & (items_.size() - 1)] = item;
  }
  void pop() {
    first_ = (first_ + 1) & (items_.size() - 1);
    --count_;
  }
  void clear() {
    items_ = {};
    first_ = count_ = 0;
  }

 private:
  void grow() {
    std::vector<Item> wider(items_.empty() ? 8 : items_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) wider[i] = at(i);
    items_ = std::move(wider);
    first_ = 0;
  }
  std::vector<Item> items_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

struct Waiter {
  std::uint64_t until = 0;
  Task task;
  std::uint32_t generation = 0;  // of the waiting stream
};

// The graph that a stream is running.
struct GraphRun {
  std::vector<std::uint32_t> missing;  // dependencies not yet complete, by node
  std::uint32_t left = 0;
  std::vector<bool> held;  // nodes that wait for resolve()
};

struct Stream {
  std::uint32_t generation = 0;
  bool alive = false;
  bool retiring = false;
  bool begun = false;  // the head item is running or waiting
  bool held = false;   // the head item is a hold that was reached
  int priority = 0;
  ContextId context;
  std::uint64_t completed = 0;
  std::uint64_t submitted = 0;
  Nanoseconds least_submitted = 0;
  std::uint32_t uncertain_submitted = 0;
  Nanoseconds begun_at = 0;    // of the head: device time
  Nanoseconds begun_run = 0;   // of the head: run time of its space
  Nanoseconds start_left = 0;  // of the head, a kernel: what of its start its first blocks waited
  Nanoseconds least_end = 0;   // of what was submitted last
  ItemRing items;
  std::vector<Waiter> waiters;
  GraphRun graph;
};

struct Context {
  std::uint32_t generation = 0;
  bool alive = false;
  bool lost = false;
  ContextSpec spec;
  std::uint32_t space = 0;
  std::uint32_t active_streams = 0;
  std::uint32_t running_grids = 0;
  std::uint64_t used_units = 0;
  std::uint64_t limit_units = 0;
  bool counting = false;  // busy since busy_since
  Nanoseconds busy_since = 0;
  Nanoseconds busy_total = 0;
};

// A kernel as the device sees it.
struct BlockShape {
  std::uint64_t blocks = 1;
  std::uint64_t units = 0;  // room that one block takes
  Nanoseconds block_ns = 0;
};

// A kernel whose blocks are being issued or run.
struct Grid {
  Task task;
  std::uint32_t context = 0;
  int priority = 0;
  std::uint64_t arrival = 0;
  std::uint64_t unissued = 0;
  std::uint64_t block_units = 0;
  std::uint64_t waves_at_once = 1;  // of a long kernel several waves are one event
  Nanoseconds block_ns = 0;
  Nanoseconds ready = 0;
  std::uint32_t batches = 0;
  bool started = false;
  bool notify_start = false;
};

// Blocks of one grid that end together.
struct Batch {
  Nanoseconds end_run = 0;
  std::uint64_t order = 0;
  std::uint32_t grid = 0;
  std::uint64_t units = 0;
};

// What shares one time slice: a context, or all MPS contexts.
struct Space {
  std::vector<Grid> grids;
  std::vector<std::uint32_t> free_grids;
  std::vector<std::uint32_t> waiting;  // grids with unissued blocks, in order of dispatch
  std::vector<Batch> batches;          // heap, first to end on top
  std::uint32_t live_grids = 0;
  std::uint32_t resident = 0;
  std::uint64_t free_units = 0;
  bool clock_on = false;
  Nanoseconds on_since = 0;
  Nanoseconds run = 0;  // run time at on_since, or now if the clock is off
};

struct CopyTask {
  Task task;
  std::uint32_t context = 0;
  Nanoseconds duration = 0;
};

// One copy engine.
struct Lane {
  std::deque<CopyTask> queue;  // front is running while end != kNever
  Nanoseconds begun = 0;
  Nanoseconds end = kNever;
  Nanoseconds busy_total = 0;
};

struct GraphState {
  std::uint32_t generation = 0;
  bool alive = false;
  bool dropped = false;
  std::uint32_t launches = 0;  // submitted and not complete
  std::vector<Work> nodes;
  std::vector<std::uint32_t> missing;     // dependencies by node
  std::vector<std::uint32_t> first_next;  // successors of node i: next[first_next[i]..[i+1])
  std::vector<std::uint32_t> next;
};

struct Switch {
  std::uint32_t from = UINT32_MAX;
  std::uint32_t to = UINT32_MAX;
  Nanoseconds cost = 0;
};

struct ProcessUse {
  BusyLog log;
  std::uint32_t contexts = 0;
  std::uint32_t counting = 0;  // contexts that have a kernel running now
  Nanoseconds since = 0;
};

}  // namespace aliquot::engine
