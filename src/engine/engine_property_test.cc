// Random programs: what must hold whatever is submitted.
#include <gtest/gtest.h>

#include <random>

#include "engine/engine.h"

namespace aliquot::engine {
namespace {

struct Submission {
  Nanoseconds time;
  std::uint32_t stream;
  Work work;
};

struct Program {
  EngineSpec spec;
  std::vector<ContextSpec> contexts;
  std::vector<std::uint32_t> stream_context;
  std::vector<Submission> submissions;
};

Work random_work(std::mt19937_64& random, std::uint32_t streams) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  switch (below(10)) {
    case 0:
      return copy(static_cast<CopyLane>(below(kCopyLanes)), 1'000 * (1 + below(5'000)));
    case 1:
      return marker();
    case 2: {
      // The stream's slot equals its number here: nothing is released in these programs.
      return wait_for({static_cast<std::uint32_t>(below(streams)), 0}, below(4));
    }
    case 3:
    case 4:
      return timed_kernel(static_cast<Nanoseconds>(1'000 * (1 + below(3'000))),
                          static_cast<std::uint32_t>(below(20)));
    default:
      return grid_kernel(1 + below(300), static_cast<std::uint16_t>(1 + below(8)),
                         static_cast<Nanoseconds>(1'000 * (1 + below(200))));
  }
}

Program random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  Program program;
  program.spec.multiprocessors = 1 + below(20);
  program.spec.kernel_start = kMicrosecond * below(100);
  for (CopyLaneSpec& lane : program.spec.copy) lane = {1.0 + below(50), kMicrosecond * below(10)};
  const std::uint32_t contexts = 1 + below(4);
  for (std::uint32_t i = 0; i < contexts; ++i) {
    program.contexts.push_back(
        {.process = i, .mps = below(2) == 0, .active_thread_percent = 10 + below(91)});
  }
  const std::uint32_t streams = 1 + below(6);
  for (std::uint32_t i = 0; i < streams; ++i) program.stream_context.push_back(below(contexts));
  Nanoseconds time = 0;
  for (std::uint32_t i = 0; i < 60; ++i) {
    time += kMicrosecond * below(300);
    program.submissions.push_back({time, below(streams), random_work(random, streams)});
  }
  return program;
}

struct Outcome {
  Engine engine;
  std::vector<ContextId> contexts;
  std::vector<StreamId> streams;
  std::vector<std::pair<Nanoseconds, std::uint64_t>> history;  // time, items complete in all
};

Outcome outcome_of(const Program& program) {
  Outcome run{Engine(program.spec), {}, {}, {}};
  for (const ContextSpec& spec : program.contexts) {
    run.contexts.push_back(run.engine.add_context(0, spec));
  }
  for (const std::uint32_t context : program.stream_context) {
    run.streams.push_back(run.engine.add_stream(run.contexts[context]));
  }
  const auto note = [&] {
    std::uint64_t complete = 0;
    for (const StreamId stream : run.streams) complete += run.engine.completed(stream);
    run.history.emplace_back(run.engine.last_event(), complete);
  };
  for (const Submission& submission : program.submissions) {
    while (run.engine.next_event() <= submission.time) {
      run.engine.advance(run.engine.next_event());
      note();
    }
    // A wait for what is never submitted would never end: wait for what is there.
    Work work = submission.work;
    if (work.kind == WorkKind::kWait) {
      work.other_seq = std::min(work.other_seq, run.engine.submitted(work.other));
    }
    run.engine.submit(submission.time, run.streams[submission.stream], work);
  }
  while (run.engine.next_event() != kNever) {
    run.engine.advance(run.engine.next_event());
    note();
  }
  return run;
}

class RandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(RandomPrograms, CompleteAllThatWasSubmitted) {
  for (unsigned i = 0; i < 50; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * 1000 + i;
    const Outcome run = outcome_of(random_program(seed));
    for (const StreamId stream : run.streams) {
      EXPECT_EQ(run.engine.completed(stream), run.engine.submitted(stream)) << "seed " << seed;
    }
    for (const ContextId context : run.contexts) EXPECT_TRUE(run.engine.idle(context));
  }
}

TEST_P(RandomPrograms, NeverGoBackInTime) {
  const Outcome run = outcome_of(random_program(static_cast<std::uint64_t>(GetParam())));
  for (std::size_t i = 1; i < run.history.size(); ++i) {
    EXPECT_LE(run.history[i - 1].first, run.history[i].first);
    EXPECT_LE(run.history[i - 1].second, run.history[i].second);
  }
}

TEST_P(RandomPrograms, AreBusyNoLongerThanTheDevice) {
  const Outcome run = outcome_of(random_program(static_cast<std::uint64_t>(GetParam())));
  const Nanoseconds end = run.engine.last_event();
  EXPECT_LE(run.engine.device_busy(end) + run.engine.switching(), end);
  Nanoseconds sum = 0;
  for (const ContextId context : run.contexts) sum += run.engine.busy(context, end);
  EXPECT_GE(sum, run.engine.device_busy(end));  // equal but for MPS clients side by side
}

TEST_P(RandomPrograms, KeepTheirShapeWhenAllTimesAreScaled) {
  constexpr Nanoseconds kScale = 10;
  Program program = random_program(static_cast<std::uint64_t>(GetParam()));
  // What rounds to a nanosecond does not scale: copies, kernels stretched by an MPS ceiling.
  for (ContextSpec& spec : program.contexts) spec.active_thread_percent = 100;
  for (Submission& s : program.submissions) {
    if (s.work.kind == WorkKind::kCopy) s.work = marker();
  }
  const Outcome plain = outcome_of(program);
  program.spec.slice *= kScale;
  program.spec.switch_busy *= kScale;
  program.spec.switch_idle *= kScale;
  program.spec.kernel_start *= kScale;
  for (Submission& s : program.submissions) {
    s.time *= kScale;
    s.work.block_ns *= kScale;
  }
  const Outcome scaled = outcome_of(program);
  ASSERT_EQ(scaled.history.size(), plain.history.size());
  for (std::size_t i = 0; i < plain.history.size(); ++i) {
    EXPECT_EQ(scaled.history[i].first, plain.history[i].first * kScale);
    EXPECT_EQ(scaled.history[i].second, plain.history[i].second);
  }
}

TEST_P(RandomPrograms, EndNoEarlierThanWasForetold) {
  const Program program = random_program(static_cast<std::uint64_t>(GetParam()));
  Engine engine(program.spec);
  std::vector<ContextId> contexts;
  std::vector<StreamId> streams;
  for (const ContextSpec& spec : program.contexts) contexts.push_back(engine.add_context(0, spec));
  for (const std::uint32_t c : program.stream_context)
    streams.push_back(engine.add_stream(contexts[c]));
  struct Promise {
    StreamId stream;
    std::uint64_t seq;
    Eta eta;
  };
  std::vector<Promise> promises;
  for (const Submission& submission : program.submissions) {
    Work work = submission.work;
    if (work.kind == WorkKind::kWait) {
      work.other_seq = std::min(work.other_seq, engine.submitted(work.other));
    }
    const StreamId stream = streams[submission.stream];
    const std::uint64_t seq = engine.submit(0, stream, work);
    promises.push_back({stream, seq, engine.earliest(stream, seq)});
  }
  // All was submitted at 0; only the last promise is made with everything known.
  const Promise last = promises.back();
  std::vector<Nanoseconds> ends(promises.size(), kNever);
  while (engine.next_event() != kNever) {
    engine.advance(engine.next_event());
    for (std::size_t i = 0; i < promises.size(); ++i) {
      if (ends[i] == kNever && engine.completed(promises[i].stream) >= promises[i].seq) {
        ends[i] = engine.last_event();
      }
    }
  }
  for (std::size_t i = 0; i < promises.size(); ++i) {
    if (promises[i].eta.exact) continue;
    EXPECT_GE(ends[i], promises[i].eta.time) << "item " << i;
  }
  if (last.eta.exact) {
    EXPECT_EQ(ends.back(), last.eta.time);
  }
}

TEST_P(RandomPrograms, TheEndOfOneStreamIsForetoldToTheNanosecond) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto below = [&](std::uint64_t n) { return static_cast<Nanoseconds>(random() % n); };
  EngineSpec spec;
  spec.kernel_start = below(8'000);
  Engine engine(spec);
  const StreamId stream = engine.add_stream(engine.add_context(0, {.process = 1}));
  Nanoseconds time = 0;
  for (int i = 0; i < 100; ++i) {
    time += below(6'000);
    const std::uint64_t seq = engine.submit(
        time, stream, grid_kernel(1 + static_cast<std::uint64_t>(below(300)), 1, 1 + below(3'000)));
    engine.advance(time + below(3'000));
    const Eta eta = engine.earliest(stream, seq);
    Engine copy = engine;
    while (copy.completed(stream) < seq) copy.advance(copy.next_event());
    ASSERT_EQ(eta.time, engine.completed(stream) < seq ? copy.last_event() : eta.time) << i;
    ASSERT_TRUE(eta.exact);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range(1, 41));

}  // namespace
}  // namespace aliquot::engine
