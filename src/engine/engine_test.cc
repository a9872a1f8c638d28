// One program alone: order in streams, waves, copies, waits, graphs. Every time is computed by
// hand.
#include "engine/engine.h"

#include <gtest/gtest.h>

namespace aliquot::engine {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;

EngineSpec ten_multiprocessors() {
  EngineSpec spec;
  spec.multiprocessors = 10;
  for (CopyLaneSpec& lane : spec.copy) lane = {.bytes_per_ns = 10.0, .latency = 2 * kUs};
  return spec;
}

struct Alone : ::testing::Test {
  Engine engine{ten_multiprocessors()};
  ContextId context = engine.add_context(0, {.process = 1});
  StreamId a = engine.add_stream(context);
  StreamId b = engine.add_stream(context);

  // When the item became complete: events are few, so step through them.
  Nanoseconds end_of(StreamId stream, std::uint64_t seq) {
    while (engine.completed(stream) < seq) {
      const Nanoseconds next = engine.next_event();
      if (next == kNever) return kNever;
      engine.advance(next);
    }
    return engine.last_event();
  }
};

TEST_F(Alone, KernelsOfOneStreamRunOneAfterTheOther) {
  engine.submit(1 * kUs, a, timed_kernel(10 * kUs));
  engine.submit(2 * kUs, a, timed_kernel(5 * kUs));
  EXPECT_EQ(end_of(a, 1), 11 * kUs);
  EXPECT_EQ(end_of(a, 2), 16 * kUs);
  EXPECT_EQ(engine.busy(context, 100 * kUs), 15 * kUs);
  EXPECT_EQ(engine.device_busy(100 * kUs), 15 * kUs);
}

TEST_F(Alone, AnIdleGapIsNotLost) {
  engine.submit(0, a, timed_kernel(10 * kUs));
  engine.advance(50 * kUs);
  // Handed over late, but nothing has happened since 10 us: it ran when it was submitted.
  engine.submit(20 * kUs, a, timed_kernel(10 * kUs));
  EXPECT_EQ(end_of(a, 2), 30 * kUs);
}

TEST_F(Alone, ATimeStampBeforeTheLastEventCountsAsThatMoment) {
  engine.submit(0, a, timed_kernel(10 * kUs));
  engine.advance(50 * kUs);
  engine.submit(5 * kUs, b, timed_kernel(10 * kUs));
  EXPECT_EQ(end_of(b, 1), 20 * kUs);
}

TEST(KernelStart, IsPaidOnAnIdleDeviceAndHidesBehindEarlierWork) {
  EngineSpec spec = ten_multiprocessors();
  spec.kernel_start = 5 * kUs;
  Engine engine(spec);
  const StreamId a = engine.add_stream(engine.add_context(0, {.process = 1}));
  const auto end_of = [&](std::uint64_t seq) {
    while (engine.completed(a) < seq) engine.advance(engine.next_event());
    return engine.last_event();
  };
  engine.submit(0, a, timed_kernel(10 * kUs));
  engine.submit(2 * kUs, a, timed_kernel(10 * kUs));  // ready at 7, its turn comes at 15
  EXPECT_EQ(end_of(1), 15 * kUs);
  engine.submit(23 * kUs, a, timed_kernel(10 * kUs));  // its turn comes at 25, ready at 28
  EXPECT_EQ(end_of(2), 25 * kUs);
  EXPECT_EQ(end_of(3), 38 * kUs);
}

TEST_F(Alone, BlocksRunInWaves) {
  // 10 SMs of 2 blocks: 20 at a time, so 45 blocks take three waves.
  engine.submit(0, a, grid_kernel(45, 2, 7 * kUs));
  EXPECT_EQ(end_of(a, 1), 21 * kUs);
}

TEST_F(Alone, TheNextKernelFillsWhatTheLastWaveLeaves) {
  // 15 blocks, one an SM: 10, then 5 until 20 us. The other stream gets 5 SMs at 10 us and again
  // at 18 us.
  engine.submit(0, a, grid_kernel(15, 1, 10 * kUs));
  engine.submit(0, b, grid_kernel(10, 1, 8 * kUs));
  EXPECT_EQ(end_of(a, 1), 20 * kUs);
  EXPECT_EQ(end_of(b, 1), 26 * kUs);
}

TEST_F(Alone, SmallKernelsOfTwoStreamsRunSideBySide) {
  engine.submit(0, a, timed_kernel(10 * kUs, 4));
  engine.submit(0, b, timed_kernel(10 * kUs, 6));
  EXPECT_EQ(end_of(a, 1), 10 * kUs);
  EXPECT_EQ(end_of(b, 1), 10 * kUs);
  EXPECT_EQ(engine.busy(context, 10 * kUs), 10 * kUs);
}

TEST_F(Alone, AHigherPriorityStreamGetsTheRoomThatBecomesFree) {
  const StreamId urgent = engine.add_stream(context, -1);
  engine.submit(0, a, grid_kernel(30, 1, 10 * kUs));            // waves end at 10, 20, 30
  engine.submit(1 * kUs, urgent, grid_kernel(10, 1, 5 * kUs));  // takes the device at 10
  EXPECT_EQ(end_of(urgent, 1), 15 * kUs);
  EXPECT_EQ(end_of(a, 1), 35 * kUs);
}

TEST_F(Alone, AtMost128GridsAreResident) {
  EngineSpec spec = ten_multiprocessors();
  spec.resident_grids = 2;
  Engine few(spec);
  const ContextId owner = few.add_context(0, {.process = 1});
  std::vector<StreamId> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(few.add_stream(owner));
  for (const StreamId stream : streams) few.submit(0, stream, timed_kernel(10 * kUs, 1));
  few.advance(10 * kUs);
  EXPECT_EQ(few.completed(streams[1]), 1u);
  EXPECT_EQ(few.completed(streams[2]), 0u);
  few.advance(20 * kUs);
  EXPECT_EQ(few.completed(streams[2]), 1u);
}

TEST_F(Alone, AVeryLongGridCostsFewEventsAndTheSameTime) {
  engine.submit(0, a, grid_kernel(10'000'000, 1, 100));
  EXPECT_EQ(end_of(a, 1), 1'000'000 * 100);
}

TEST_F(Alone, ACopyOverlapsAKernelAndTheOtherDirection) {
  engine.submit(0, a, timed_kernel(30 * kUs));
  engine.submit(0, b, copy(CopyLane::kHostToDevice, 100'000));  // 2 + 10 us
  const StreamId c = engine.add_stream(context);
  engine.submit(0, c, copy(CopyLane::kDeviceToHost, 100'000));
  const StreamId d = engine.add_stream(context);
  engine.submit(0, d, copy(CopyLane::kHostToDevice, 100'000));
  EXPECT_EQ(end_of(b, 1), 12 * kUs);
  EXPECT_EQ(end_of(c, 1), 12 * kUs);
  EXPECT_EQ(end_of(d, 1), 24 * kUs);  // same engine as b's
  EXPECT_EQ(end_of(a, 1), 30 * kUs);
  EXPECT_EQ(engine.copy_busy(CopyLane::kHostToDevice, 30 * kUs), 24 * kUs);
}

TEST_F(Alone, AStreamWaitsForAnother) {
  const std::uint64_t seq = engine.submit(0, a, timed_kernel(10 * kUs, 1));
  engine.submit(0, a, timed_kernel(10 * kUs, 1));
  engine.submit(0, b, wait_for(a, seq));
  engine.submit(0, b, timed_kernel(3 * kUs, 1));
  EXPECT_EQ(end_of(b, 2), 13 * kUs);
}

TEST_F(Alone, AMarkerTellsItsTime) {
  engine.submit(0, a, timed_kernel(10 * kUs));
  Work record = marker();
  record.notify_end = true;
  const std::uint64_t seq = engine.submit(1 * kUs, a, record);
  engine.advance(50 * kUs);
  const std::vector<Notice> notices = engine.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].time, 10 * kUs);
  EXPECT_EQ(notices[0].seq, seq);
  EXPECT_TRUE(engine.take_notices().empty());
}

TEST_F(Alone, AHoldStopsTheStreamUntilTheHostIsDone) {
  engine.submit(0, a, timed_kernel(10 * kUs));
  const std::uint64_t held = engine.submit(0, a, hold());
  engine.submit(0, a, timed_kernel(5 * kUs));
  engine.advance(100 * kUs);
  EXPECT_EQ(engine.completed(a), 1u);
  const std::vector<Notice> notices = engine.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, WorkKind::kHold);
  EXPECT_EQ(notices[0].time, 10 * kUs);
  engine.resolve(40 * kUs, a, held);
  EXPECT_EQ(end_of(a, 3), 45 * kUs);
}

TEST_F(Alone, IndependentNodesOfAGraphRunSideBySide) {
  Graph graph;
  graph.nodes.push_back({timed_kernel(10 * kUs, 5), {}});
  graph.nodes.push_back({timed_kernel(20 * kUs, 5), {}});
  graph.nodes.push_back({copy(CopyLane::kDeviceToHost, 10'000), {0}});  // 2 + 1 us
  graph.nodes.push_back({timed_kernel(5 * kUs), {1, 2}});
  const Result<GraphId> id = engine.define_graph(graph);
  ASSERT_TRUE(id);
  engine.submit(0, a, launch_graph(*id));
  engine.submit(0, a, timed_kernel(1 * kUs));
  EXPECT_EQ(end_of(a, 1), 25 * kUs);
  EXPECT_EQ(end_of(a, 2), 26 * kUs);
}

TEST_F(Alone, ADroppedGraphRunsToItsEnd) {
  Graph graph;
  graph.nodes.push_back({timed_kernel(10 * kUs), {}});
  const GraphId id = *engine.define_graph(graph);
  engine.submit(0, a, launch_graph(id));
  engine.drop_graph(id);
  EXPECT_EQ(engine.submit(0, a, launch_graph(id)), 0u);
  EXPECT_EQ(end_of(a, 1), 10 * kUs);
}

TEST_F(Alone, AGraphWhoseNodesAreOutOfOrderIsRefused) {
  Graph graph;
  graph.nodes.push_back({marker(), {1}});
  graph.nodes.push_back({marker(), {}});
  EXPECT_FALSE(engine.define_graph(graph));
}

TEST_F(Alone, ARetiredStreamRunsWhatItHasAndTakesNoMore) {
  engine.submit(0, a, timed_kernel(10 * kUs));
  engine.submit(0, b, wait_for(a, 1));
  engine.retire_stream(1 * kUs, a);
  EXPECT_EQ(engine.submit(1 * kUs, a, marker()), 0u);
  engine.advance(10 * kUs);
  EXPECT_EQ(engine.completed(b), 1u);
  EXPECT_FALSE(engine.stream_exists(a));
  EXPECT_EQ(engine.device_busy(20 * kUs), 10 * kUs);
}

TEST_F(Alone, TheEndOfASingleStreamIsKnownExactly) {
  for (int i = 0; i < 100; ++i) engine.submit(0, a, timed_kernel(10 * kUs));
  engine.submit(0, a, copy(CopyLane::kHostToDevice, 100'000));
  engine.advance(25 * kUs);
  const Eta eta = engine.earliest(a, 101);
  EXPECT_TRUE(eta.exact);
  EXPECT_EQ(eta.time, 1012 * kUs);
  EXPECT_EQ(end_of(a, 101), eta.time);
}

TEST_F(Alone, TheEndOfSeveralStreamsIsFoundByLookingAhead) {
  for (int i = 0; i < 10; ++i) {
    engine.submit(0, a, grid_kernel(13, 1, 10 * kUs));
    engine.submit(0, b, grid_kernel(9, 1, 7 * kUs));
  }
  const Eta eta = engine.earliest(b, 10);
  EXPECT_TRUE(eta.exact);
  EXPECT_EQ(end_of(b, 10), eta.time);
}

TEST_F(Alone, WhatAwaitsTheHostHasNoExactEnd) {
  engine.submit(0, a, hold());
  engine.submit(0, a, timed_kernel(5 * kUs));
  const Eta eta = engine.earliest(a, 2);
  EXPECT_FALSE(eta.exact);
  EXPECT_EQ(eta.time, 5 * kUs);
}

}  // namespace
}  // namespace aliquot::engine
