// Several programs on one GPU: slices, switches, MPS, loss of one of them. Computed by hand.
#include <gtest/gtest.h>

#include "engine/engine.h"

namespace aliquot::engine {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;

EngineSpec defaults() {  // slices of 2 ms, switches of 100 and 10 us
  EngineSpec spec;
  spec.multiprocessors = 10;
  return spec;
}

Nanoseconds end_of(Engine& engine, StreamId stream, std::uint64_t seq) {
  while (engine.completed(stream) < seq) {
    const Nanoseconds next = engine.next_event();
    if (next == kNever) return kNever;
    engine.advance(next);
  }
  return engine.last_event();
}

struct TwoPrograms : ::testing::Test {
  Engine engine{defaults()};
  ContextId first = engine.add_context(0, {.process = 11});
  ContextId second = engine.add_context(0, {.process = 22});
  StreamId a = engine.add_stream(first);
  StreamId b = engine.add_stream(second);
};

TEST_F(TwoPrograms, TakeTurnsOfTwoMillisecondsAndPayForEachSwitch) {
  engine.submit(0, a, timed_kernel(5 * kMs));
  engine.submit(0, b, timed_kernel(3 * kMs));
  // a 0..2, b 2.1..4.1, a 4.2..6.2, b 6.3..7.3 (done, 10 us), a 7.31..8.31
  EXPECT_EQ(end_of(engine, b, 1), 7300 * kUs);
  EXPECT_EQ(end_of(engine, a, 1), 8310 * kUs);
  EXPECT_EQ(engine.busy(first, 10 * kMs), 5 * kMs);
  EXPECT_EQ(engine.busy(second, 10 * kMs), 3 * kMs);
  EXPECT_EQ(engine.device_busy(10 * kMs), 8 * kMs);
  EXPECT_EQ(engine.switching(), 310 * kUs);
  EXPECT_EQ(engine.preemptions(), 3u);
}

TEST_F(TwoPrograms, ANewcomerWaitsForTheEndOfTheRunningSlice) {
  engine.submit(0, a, timed_kernel(10 * kMs));
  engine.submit(3 * kMs, b, timed_kernel(1 * kMs));  // a's second slice ends at 4 ms
  EXPECT_EQ(end_of(engine, b, 1), 5100 * kUs);
  EXPECT_EQ(end_of(engine, a, 1), 11110 * kUs);
}

TEST_F(TwoPrograms, AContextWithoutWorkIsSkippedAtTheCheapPrice) {
  engine.submit(0, a, timed_kernel(1 * kMs));
  engine.submit(0, b, timed_kernel(1 * kMs));
  EXPECT_EQ(end_of(engine, a, 1), 1 * kMs);
  EXPECT_EQ(end_of(engine, b, 1), 2010 * kUs);
}

TEST_F(TwoPrograms, AnIdleGpuSwitchesAtOnce) {
  engine.submit(0, a, timed_kernel(1 * kMs));
  engine.submit(5 * kMs, b, timed_kernel(1 * kMs));
  EXPECT_EQ(end_of(engine, b, 1), 6010 * kUs);
}

TEST_F(TwoPrograms, ShortKernelsShareEquallyWhateverTheirNumber) {
  for (int i = 0; i < 2000; ++i) engine.submit(0, a, timed_kernel(10 * kUs));
  for (int i = 0; i < 20; ++i) engine.submit(0, b, timed_kernel(1 * kMs));
  engine.advance(21 * kMs);  // five rounds of 2 + 0.1 + 2 + 0.1 ms
  EXPECT_EQ(engine.busy(first, 21 * kMs), 10 * kMs);
  EXPECT_EQ(engine.busy(second, 21 * kMs), 10 * kMs);
}

TEST_F(TwoPrograms, CopiesOfTheOneOverlapKernelsOfTheOther) {
  engine.submit(0, a, timed_kernel(4 * kMs));
  engine.submit(0, b, copy(CopyLane::kHostToDevice, 12'000'000));  // 1 ms
  EXPECT_EQ(end_of(engine, b, 1), 1 * kMs);
  EXPECT_EQ(end_of(engine, a, 1), 4 * kMs);
  EXPECT_EQ(engine.switching(), 0);
}

TEST_F(TwoPrograms, AStreamWaitsForOneOfTheOtherProgram) {
  engine.submit(0, a, timed_kernel(1 * kMs));
  engine.submit(0, b, wait_for(a, 1));
  engine.submit(0, b, timed_kernel(1 * kMs));
  EXPECT_EQ(end_of(engine, b, 2), 2010 * kUs);
}

TEST_F(TwoPrograms, TheEndUnderCompetitionIsBoundedByTheOwnWork) {
  engine.submit(0, a, timed_kernel(5 * kMs));
  engine.submit(0, b, timed_kernel(3 * kMs));
  const Eta eta = engine.earliest(b, 1);
  EXPECT_FALSE(eta.exact);
  EXPECT_EQ(eta.time, 3 * kMs);
  engine.advance(5 * kMs);  // last event 4.2 ms: b has run 2 of 3 ms
  EXPECT_EQ(engine.earliest(b, 1).time, 5200 * kUs);
}

TEST_F(TwoPrograms, ALostContextFreesTheGpuAndWhoeverWaitsForIt) {
  engine.submit(0, a, timed_kernel(50 * kMs));
  engine.submit(0, b, wait_for(a, 1));
  engine.submit(0, b, timed_kernel(1 * kMs));
  engine.fail_context(3 * kMs, first, 31);
  EXPECT_TRUE(engine.lost(first));
  EXPECT_EQ(engine.submit(3 * kMs, a, marker()), 0u);
  EXPECT_EQ(engine.completed(a), 0u);
  EXPECT_EQ(end_of(engine, b, 2), 4010 * kUs);
  EXPECT_EQ(engine.busy(first, 10 * kMs), 3 * kMs);
  ASSERT_EQ(engine.xids().size(), 1u);
  EXPECT_EQ(engine.xids()[0].xid, 31u);
  EXPECT_EQ(engine.xids()[0].process, 11u);
  EXPECT_EQ(engine.xids()[0].time, 3 * kMs);
}

TEST_F(TwoPrograms, ADeviceThatFallsOffTheBusLosesAll) {
  engine.submit(0, a, timed_kernel(50 * kMs));
  engine.submit(0, b, copy(CopyLane::kPeer, 1'000'000'000));
  engine.fail_device(1 * kMs, 79);
  EXPECT_TRUE(engine.lost(first) && engine.lost(second));
  EXPECT_EQ(engine.next_event(), kNever);
  EXPECT_EQ(engine.device_busy(9 * kMs), 1 * kMs);
}

TEST_F(TwoPrograms, ARemovedContextIsGoneInTheMiddleOfItsKernel) {
  engine.submit(0, a, timed_kernel(50 * kMs));
  engine.submit(0, b, timed_kernel(1 * kMs));
  engine.remove_context(1 * kMs, first);
  EXPECT_FALSE(engine.stream_exists(a));
  EXPECT_EQ(end_of(engine, b, 1), 2010 * kUs);
  // Its slot serves a later context, whose ids are not the old ones.
  const ContextId third = engine.add_context(3 * kMs, {.process = 33});
  EXPECT_NE(third, first);
  EXPECT_EQ(engine.submit(3 * kMs, a, marker()), 0u);
}

struct Mps : ::testing::Test {
  Engine engine{defaults()};
  StreamId client(std::uint64_t process, std::uint32_t percent = 100) {
    const ContextId id =
        engine.add_context(0, {.process = process, .mps = true, .active_thread_percent = percent});
    contexts.push_back(id);
    return engine.add_stream(id);
  }
  std::vector<ContextId> contexts;
};

TEST_F(Mps, ClientsRunSideBySideWithoutSwitches) {
  const StreamId a = client(1);
  const StreamId b = client(2);
  engine.submit(0, a, timed_kernel(10 * kMs, 5));
  engine.submit(0, b, timed_kernel(8 * kMs, 5));
  EXPECT_EQ(end_of(engine, b, 1), 8 * kMs);
  EXPECT_EQ(end_of(engine, a, 1), 10 * kMs);
  EXPECT_EQ(engine.busy(contexts[0], 10 * kMs), 10 * kMs);
  EXPECT_EQ(engine.busy(contexts[1], 10 * kMs), 8 * kMs);
  EXPECT_EQ(engine.device_busy(10 * kMs), 10 * kMs);
  EXPECT_EQ(engine.switching(), 0);
}

TEST_F(Mps, TheActiveThreadPercentageIsACeilingOnMultiprocessors) {
  const StreamId a = client(1, 40);  // 4 of 10 SMs
  const StreamId b = client(2);
  engine.submit(0, a, grid_kernel(8, 1, 10 * kMs));   // two waves of 4
  engine.submit(0, b, grid_kernel(12, 1, 10 * kMs));  // two waves of 6
  EXPECT_EQ(end_of(engine, a, 1), 20 * kMs);
  EXPECT_EQ(end_of(engine, b, 1), 20 * kMs);
}

TEST_F(Mps, ThePercentageIsRoundedUpToPairsOfMultiprocessors) {
  const StreamId a = client(1, 25);  // 2.5 -> 3 -> 4 SMs
  engine.submit(0, a, grid_kernel(4, 1, 10 * kMs));
  EXPECT_EQ(end_of(engine, a, 1), 10 * kMs);
}

TEST_F(Mps, AKernelTimedOnTheWholeDeviceTakesLongerUnderACeiling) {
  const StreamId a = client(1, 40);
  engine.submit(0, a, timed_kernel(10 * kMs));
  EXPECT_EQ(end_of(engine, a, 1), 25 * kMs);
}

TEST_F(Mps, AllClientsTogetherAreOneTurnBesideAPlainContext) {
  const StreamId a = client(1);
  const StreamId b = client(2);
  const ContextId plain = engine.add_context(0, {.process = 3});
  const StreamId c = engine.add_stream(plain);
  for (const StreamId stream : {a, b}) engine.submit(0, stream, timed_kernel(50 * kMs, 5));
  engine.submit(0, c, timed_kernel(50 * kMs));
  engine.advance(42 * kMs);  // ten rounds of 4.2 ms
  EXPECT_EQ(engine.busy(plain, 42 * kMs), 20 * kMs);
  EXPECT_EQ(engine.busy(contexts[0], 42 * kMs), 20 * kMs);
  EXPECT_EQ(engine.busy(contexts[1], 42 * kMs), 20 * kMs);
}

TEST_F(Mps, TheRestGetsTheRoomOfAClientThatIsLost) {
  const StreamId a = client(1);
  const StreamId b = client(2);
  engine.submit(0, a, timed_kernel(50 * kMs));
  engine.submit(0, b, timed_kernel(10 * kMs));
  engine.fail_context(5 * kMs, contexts[0], 13);
  EXPECT_EQ(end_of(engine, b, 1), 15 * kMs);
}

}  // namespace
}  // namespace aliquot::engine
