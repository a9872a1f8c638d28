// What a GPU is and what it is asked to do: the values that go into and come out of the Engine.
//
// All times are nanoseconds of device time. Sources of the defaults: docs/engine.md, which says
// of each number whether it was measured, published or assumed. Values; no thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/clock.h"

namespace aliquot::engine {

inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

// Slots are used again; the generation tells a later owner from an earlier one. Default: nobody.
struct ContextId {
  std::uint32_t slot = UINT32_MAX;
  std::uint32_t generation = 0;
  bool operator==(const ContextId&) const = default;
};
struct StreamId {
  std::uint32_t slot = UINT32_MAX;
  std::uint32_t generation = 0;
  bool operator==(const StreamId&) const = default;
};
struct GraphId {
  std::uint32_t slot = UINT32_MAX;
  std::uint32_t generation = 0;
  bool operator==(const GraphId&) const = default;
};

enum class CopyLane : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer };
inline constexpr std::size_t kCopyLanes = 4;

struct CopyLaneSpec {
  double bytes_per_ns = 12.0;  // 12 GB/s: pinned memory over PCIe 3.0 x16
  Nanoseconds latency = 0;
};

struct EngineSpec {
  std::uint32_t multiprocessors = 108;
  std::uint32_t resident_grids = 128;
  Nanoseconds slice = 2 * kMillisecond;
  Nanoseconds switch_busy = 100 * kMicrosecond;  // the context left behind still has work
  Nanoseconds switch_idle = 10 * kMicrosecond;   // it has none
  // From a kernel's submission to its first block; behind earlier work it costs nothing.
  Nanoseconds kernel_start = 0;
  double fill_bytes_per_ns = 600.0;
  std::array<CopyLaneSpec, kCopyLanes> copy;
  Nanoseconds sample_period = kSecond / 6;  // of NVML's utilisation samples
  Nanoseconds sample_lag = 100 * kMillisecond;
};

struct ContextSpec {
  std::uint64_t process = 0;
  bool mps = false;  // all such contexts share one time slice and run side by side
  std::uint32_t active_thread_percent = 100;  // with mps: ceiling on multiprocessors
};

enum class WorkKind : std::uint8_t { kMarker, kKernel, kCopy, kFill, kWait, kHold, kGraph };

// One item of a stream (or node of a graph). Make it with the functions below.
struct Work {
  WorkKind kind = WorkKind::kMarker;
  CopyLane lane = CopyLane::kHostToDevice;
  bool notify_start = false;  // a Notice when it begins to run (kernels; kHold always gives one)
  bool notify_end = false;    // a Notice when it is complete
  std::uint16_t blocks_per_sm = 0;  // kernel: resident blocks an SM holds; 0: see sms_per_block
  std::uint32_t sms_per_block = 0;  // kernel, if blocks_per_sm is 0: SMs one block takes; 0: all
  std::uint64_t blocks = 1;
  Nanoseconds block_ns = 0;
  std::uint64_t bytes = 0;  // copy, fill
  StreamId other = {};      // wait: until (other, other_seq) is complete
  std::uint64_t other_seq = 0;
  GraphId graph = {};
};

// A place in the stream; with notify_end an event record: the notice carries its time.
inline Work marker() { return {}; }
// `duration` on `sms` multiprocessors (0: the whole device).
inline Work timed_kernel(Nanoseconds duration, std::uint32_t sms = 0) {
  return {.kind = WorkKind::kKernel, .sms_per_block = sms, .block_ns = duration};
}
// Waves model: `blocks` of `block_ns` each, `blocks_per_sm` of them at a time on one SM.
inline Work grid_kernel(std::uint64_t blocks, std::uint16_t blocks_per_sm, Nanoseconds block_ns) {
  return {.kind = WorkKind::kKernel,
          .blocks_per_sm = blocks_per_sm,
          .blocks = blocks,
          .block_ns = block_ns};
}
inline Work copy(CopyLane lane, std::uint64_t bytes) {
  return {.kind = WorkKind::kCopy, .lane = lane, .bytes = bytes};
}
inline Work fill(std::uint64_t bytes) { return {.kind = WorkKind::kFill, .bytes = bytes}; }
// A stream waits for what was submitted elsewhere, in any context; a stream that is gone is done.
inline Work wait_for(StreamId other, std::uint64_t seq) {
  return {.kind = WorkKind::kWait, .other = other, .other_seq = seq};
}
// The stream stops here until Engine::resolve: a host function, another GPU, another process.
inline Work hold() { return {.kind = WorkKind::kHold}; }
inline Work launch_graph(GraphId graph) { return {.kind = WorkKind::kGraph, .graph = graph}; }

// Nodes in an order in which each comes after those it waits for. Child graphs are flattened by
// the caller; kGraph is not a node.
struct Graph {
  struct Node {
    Work work;
    std::vector<std::uint32_t> after;
  };
  std::vector<Node> nodes;
};

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

// What the caller asked to be told. A hold gives kStarted and then waits for resolve().
struct Notice {
  enum class What : std::uint8_t { kStarted, kCompleted };
  What what = What::kCompleted;
  WorkKind kind = WorkKind::kMarker;
  StreamId stream;
  std::uint64_t seq = 0;
  std::uint32_t node = kNoNode;  // of a graph
  Nanoseconds time = 0;
};

struct Eta {
  Nanoseconds time = 0;  // not complete before
  bool exact = false;    // complete at `time` unless something else is submitted or fails
};

struct XidRecord {
  Nanoseconds time = 0;
  std::uint32_t xid = 0;
  std::uint64_t process = 0;  // 0: the device as a whole
};

// As NVML reports: integer percent of one sample period that ended at `time`.
struct UtilisationSample {
  Nanoseconds time = 0;
  std::uint32_t percent = 0;
  bool operator==(const UtilisationSample&) const = default;
};
struct ProcessSample {
  std::uint64_t process = 0;
  Nanoseconds time = 0;
  std::uint32_t sm_percent = 0;
};

}  // namespace aliquot::engine
