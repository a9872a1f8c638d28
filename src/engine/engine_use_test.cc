// Utilisation as NVML reports it: sample period, lag, whole percents, per process.
#include <gtest/gtest.h>

#include "engine/busy_log.h"
#include "engine/engine.h"

namespace aliquot::engine {
namespace {

constexpr Nanoseconds kMs = kMillisecond;

EngineSpec sampled() {
  EngineSpec spec;
  spec.sample_period = 100 * kMs;
  spec.sample_lag = 50 * kMs;
  return spec;
}

struct Use : ::testing::Test {
  Engine engine{sampled()};
  ContextId context = engine.add_context(0, {.process = 7});
  StreamId stream = engine.add_stream(context);
};

TEST_F(Use, ASampleShowsAfterItsLagInWholePercents) {
  engine.submit(10 * kMs, stream, timed_kernel(25'990'000));  // 25.99 ms of 100
  engine.advance(149 * kMs);
  EXPECT_TRUE(engine.device_samples(0, 149 * kMs).empty());
  const std::vector<UtilisationSample> expected = {{100 * kMs, 25}};
  EXPECT_EQ(engine.device_samples(0, 150 * kMs), expected);
}

TEST_F(Use, ARunningKernelCountsBeforeItEnds) {
  engine.submit(50 * kMs, stream, timed_kernel(1000 * kMs));
  engine.advance(260 * kMs);
  const std::vector<UtilisationSample> expected = {{100 * kMs, 50}, {200 * kMs, 100}};
  EXPECT_EQ(engine.device_samples(0, 260 * kMs), expected);
}

TEST_F(Use, OnlySamplesYoungerThanAskedForAreGiven) {
  engine.submit(0, stream, timed_kernel(1000 * kMs));
  const std::vector<UtilisationSample> expected = {{300 * kMs, 100}};
  EXPECT_EQ(engine.device_samples(200 * kMs, 380 * kMs), expected);
}

TEST_F(Use, ProcessesShareTheDeviceAndSilentOnesAreNotListed) {
  const ContextId other = engine.add_context(0, {.process = 8});
  engine.add_context(0, {.process = 9});
  const StreamId theirs = engine.add_stream(other);
  engine.submit(0, stream, timed_kernel(500 * kMs));
  engine.submit(0, theirs, timed_kernel(500 * kMs));
  engine.advance(400 * kMs);
  const std::vector<ProcessSample> samples = engine.process_samples(100 * kMs, 250 * kMs);
  ASSERT_EQ(samples.size(), 2u);  // half of 100 ms less the switches: 47.x
  for (const ProcessSample& sample : samples) {
    EXPECT_GE(sample.sm_percent, 46u);
    EXPECT_LE(sample.sm_percent, 49u);
    EXPECT_EQ(sample.time, 200 * kMs);
  }
}

TEST_F(Use, WhatSwitchesCostIsToldByThePairUntilOneOfThemIsGone) {
  const ContextId other = engine.add_context(0, {.process = 8});
  const StreamId theirs = engine.add_stream(other);
  engine.submit(0, stream, timed_kernel(1 * kMs));
  engine.submit(0, theirs, timed_kernel(1 * kMs));
  engine.advance(100 * kMs);
  ASSERT_EQ(engine.switches(), 1u);
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(engine.switching_between().at(Pair(7, 8)), engine.switching());
  EXPECT_FALSE(engine.switching_between().contains(Pair(8, 7)));
  engine.remove_context(100 * kMs, other);
  EXPECT_TRUE(engine.switching_between().empty());
}

TEST_F(Use, MemoryUtilisationIsTheCopiesAlone) {
  engine.submit(0, stream, copy(CopyLane::kHostToDevice, 12ull * 40 * 1'000'000));  // 40 ms
  engine.submit(0, stream, timed_kernel(30 * kMs));
  engine.advance(200 * kMs);
  const std::vector<UtilisationSample> copies = {{100 * kMs, 40}};
  EXPECT_EQ(engine.memory_samples(0, 150 * kMs), copies);
  const std::vector<UtilisationSample> kernels = {{100 * kMs, 30}};
  EXPECT_EQ(engine.device_samples(0, 150 * kMs), kernels);
}

TEST(BusyLog, SplitsAnIntervalOverItsBins) {
  BusyLog log(10);
  log.add(5, 27);
  EXPECT_EQ(log.bin(0), 5);
  EXPECT_EQ(log.bin(1), 10);
  EXPECT_EQ(log.bin(2), 7);
  EXPECT_EQ(log.total(), 22);
}

TEST(BusyLog, ForgetsBinsThatAreTooOld) {
  BusyLog log(10);
  log.add(0, 10);
  log.add(10 * 127, 10 * 127 + 3);
  EXPECT_EQ(log.bin(0), 10);
  log.add(10 * 128, 10 * 128 + 4);
  EXPECT_EQ(log.bin(0), 0);
  EXPECT_EQ(log.bin(128), 4);
  log.add(10 * 100'000, 10 * 100'000 + 1);
  EXPECT_EQ(log.bin(99'999), 0);
}

}  // namespace
}  // namespace aliquot::engine
