#include "broker/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace aliquot::broker {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  void put() const { EXPECT_EQ(write(in.get(), "x", 1), 1); }
  UniqueFd out, in;
};

TEST(Loop, CallsTheHandlerOfWhatIsReadable) {
  SteppedClock clock;
  Loop loop(clock);
  const Pipe first, second;
  int calls[2] = {};
  ASSERT_TRUE(loop.add(first.out.get(), [&] { calls[0]++; }));
  ASSERT_TRUE(loop.add(second.out.get(), [&] { calls[1]++; }));
  second.put();
  loop.turn(0);
  EXPECT_EQ(calls[0], 0);
  EXPECT_EQ(calls[1], 1);
}

TEST(Loop, AnEventOfADescriptorThatAnotherHandlerRemovedIsDropped) {
  SteppedClock clock;
  Loop loop(clock);
  const Pipe first, second;
  int calls = 0;
  const auto remove_both = [&] {
    ++calls;
    loop.remove(first.out.get());
    loop.remove(second.out.get());
  };
  ASSERT_TRUE(loop.add(first.out.get(), remove_both));
  ASSERT_TRUE(loop.add(second.out.get(), remove_both));
  first.put();
  second.put();
  loop.turn(0);
  loop.turn(0);
  EXPECT_EQ(calls, 1);
}

TEST(Loop, PeriodicWorkComesWhenItsTimeHasCome) {
  SteppedClock clock;
  Loop loop(clock);
  int calls = 0;
  loop.every(kSecond, [&] { ++calls; });
  loop.turn(0);
  EXPECT_EQ(calls, 0);
  clock.advance(kSecond);
  loop.turn(0);
  loop.turn(0);
  EXPECT_EQ(calls, 1);
}

TEST(Loop, WhatAnotherThreadPostsRunsOnTheLoop) {
  MonotonicClock clock;
  Loop loop(clock);
  std::thread::id ran_on;
  std::thread other([&] {
    loop.post([&] {
      ran_on = std::this_thread::get_id();
      loop.stop();
    });
  });
  loop.run();
  other.join();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Loop, AnotherThreadCanStopIt) {
  MonotonicClock clock;
  Loop loop(clock);
  std::thread other([&] { loop.stop(); });
  loop.run();
  other.join();
}

}  // namespace
}  // namespace aliquot::broker
