// The server's state in stepped time: no sockets, no processes; clients are what stands in their
// pages.
#include "simdriver/server/machine_state.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "simdriver/server/handlers.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

MachineSpec two_gpus() {
  MachineSpec spec;
  GpuModel model;
  model.sms = 10;
  model.memory.driver_total_bytes = 1024 * kMiB;
  model.memory.context_bytes = 100 * kMiB;
  model.memory.bus_bits = 1024;
  model.clocks.memory_max_mhz = 1000;
  model.pcie.host_gbytes_per_s = 10;
  model.timing.time_slice_ns = 2'000'000;
  model.timing.utilisation_period_ns = 1'000'000;
  spec.models = {model};
  spec.gpus.resize(2);
  spec.nvlinks.assign(2, {0, 0});
  return spec;
}

class MachineStateTest : public testing::Test {
 protected:
  void SetUp() override {
    clock_.advance(kSecond);
    auto made = MachineState::make(two_gpus(), clock_, 64 * kMiB);
    ASSERT_TRUE(made);
    machine_ = std::move(*made);
  }
  Session& session() { return machine_->add_session(std::make_unique<Session>()); }
  // A context with stream 0 open.
  ContextEntry& context(Session& owner, std::uint32_t device = 0) {
    const auto opened = machine_->open_context(owner, device);
    EXPECT_TRUE(opened);
    push(**opened, CommandOp::kOpenStream, 0, 0);
    return **opened;
  }
  void push(ContextEntry& entry, CommandOp op, std::uint64_t seq, std::uint64_t a0 = 0,
            std::uint64_t a1 = 0, std::uint64_t a2 = 0) {
    const std::uint32_t tail = entry.client->tail;
    entry.client->ring[tail % kRingSlots] = {clock_.now(), op, 0, 0, seq, {a0, a1, a2, 0, 0}};
    entry.client->tail = tail + 1;
  }
  void spin(ContextEntry& entry, std::uint64_t seq, std::uint64_t ns) {
    push(entry, CommandOp::kLaunch, seq, 1, 1, ns);
  }
  void step(Nanoseconds by) {
    clock_.advance(by);
    machine_->catch_up();
  }
  SteppedClock clock_;
  std::unique_ptr<MachineState> machine_;
};

TEST_F(MachineStateTest, TellsWhatHasEndedWhenItsTimeHasCome) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1000);
  spin(entry, 2, 1000);
  step(999);
  EXPECT_EQ(entry.server->done[0], 0u);
  step(1);
  EXPECT_EQ(entry.server->done[0], 1u);
  step(1000);
  EXPECT_EQ(entry.server->done[0], 2u);
  EXPECT_FALSE(machine_->has_work());
}

TEST_F(MachineStateTest, ComputesTheSameTimesHoweverLateItLooks) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1000);
  clock_.advance(5000);
  spin(entry, 2, 1000);
  push(entry, CommandOp::kMark, 3, 7);
  const Nanoseconds submitted = clock_.now();
  step(1'000'000);
  EXPECT_EQ(entry.server->done[0], 3u);
  const auto ended = machine_->device(0)->timeline.mark(entry.key, {entry.key, 0, 7, 3});
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, submitted + 1000);
}

// Who reads the time may be kept waiting by the host before it uses it.
class InterruptedClock final : public Clock {
 public:
  Nanoseconds now() const override {
    const Nanoseconds read = now_;
    if (const auto meanwhile = std::exchange(meanwhile_, {})) meanwhile();
    return read;
  }
  void advance(Nanoseconds by) { now_ += by; }
  void next_time(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

 private:
  Nanoseconds now_ = kSecond;
  mutable std::function<void()> meanwhile_;
};

TEST(MachineState, WhatIsSubmittedWhileItIsKeptWaitingDoesNotEndEarly) {
  InterruptedClock clock;
  const auto machine = std::move(*MachineState::make(two_gpus(), clock, 64 * kMiB));
  const auto opened = machine->open_context(machine->add_session(std::make_unique<Session>()), 0);
  ASSERT_TRUE(opened);
  ClientPage& page = *(*opened)->client;
  page.ring[0] = {clock.now(), CommandOp::kOpenStream, 0, 0, 0, {}};
  page.tail = 1;
  machine->catch_up();
  clock.next_time([&] {
    clock.advance(2000);
    page.ring[1] = {clock.now(), CommandOp::kLaunch, 0, 0, 1, {1, 1, 10'000, 0, 0}};
    page.tail = 2;
  });
  machine->catch_up();
  clock.advance(9999);
  machine->catch_up();
  EXPECT_EQ((*opened)->server->done[0], 0u);
  clock.advance(1);
  machine->catch_up();
  EXPECT_EQ((*opened)->server->done[0], 1u);
}

TEST_F(MachineStateTest, TakesTheHostsTimesAndTellsItsOwnInSlowMotion) {
  MachineSpec spec = two_gpus();
  spec.time_scale_micro = 100'000;
  machine_ = std::move(*MachineState::make(spec, clock_, 64 * kMiB));
  ContextEntry& entry = context(session());
  clock_.advance(10'000);
  spin(entry, 1, 2000);
  push(entry, CommandOp::kMark, 2, 7);
  clock_.advance(19'999);
  machine_->catch_up();
  EXPECT_EQ(entry.server->done[0], 0u);
  clock_.advance(1);
  machine_->catch_up();
  EXPECT_EQ(entry.server->done[0], 2u);
  EXPECT_EQ(machine_->device(0)->timeline.mark(entry.key, {entry.key, 0, 7, 2}),
            machine_->started() + 1000 + 2000);
}

TEST_F(MachineStateTest, LooksAgainWhenAWaitedForCommandCanHaveEnded) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1'000'000);
  step(0);
  EXPECT_FALSE(machine_->next_look());
  entry.client->waiters[3].seq = 1;
  entry.client->waiters[3].stream_plus_1 = 1;
  const auto look = machine_->next_look();
  ASSERT_TRUE(look);
  EXPECT_EQ(*look, clock_.now() + 1'000'000);
}

// Waiter 3 of the context waits for a command of stream 0 and can sleep by itself.
void wait_for(ContextEntry& entry, std::uint64_t seq) {
  entry.client->waiters[3].takes_promise = 1;
  entry.client->waiters[3].seq = seq;
  entry.client->waiters[3].stream_plus_1 = 1;
}

TEST_F(MachineStateTest, PromisesAWaiterWhenItsCommandEndsAndNeedNotLookAgain) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1'000'000);
  step(0);
  wait_for(entry, 1);
  machine_->publish();
  const Promise& promise = entry.server->promises[3];
  EXPECT_EQ(promise.place, place_in(0, 1));
  EXPECT_EQ(promise.until_ns, clock_.now() + 1'000'000);
  EXPECT_EQ(promise.tail, entry.client->tail);
  EXPECT_FALSE(machine_->next_look());
}

TEST_F(MachineStateTest, TakesAPromiseBackWhenAnotherContextComesToTheGpu) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1'000'000);
  step(0);
  wait_for(entry, 1);
  machine_->publish();
  context(session(), 1);
  EXPECT_NE(entry.server->promises[3].place, 0u);
  context(session(), 0);
  EXPECT_EQ(entry.server->promises[3].place, 0u);
  machine_->publish();
  EXPECT_EQ(entry.server->promises[3].place, 0u);
  EXPECT_TRUE(machine_->next_look());
}

TEST_F(MachineStateTest, PromisesAnewWhenMoreIsSubmitted) {
  ContextEntry& entry = context(session());
  spin(entry, 1, 1'000'000);
  step(0);
  wait_for(entry, 1);
  machine_->publish();
  spin(entry, 2, 1000);
  step(0);
  EXPECT_EQ(entry.server->promises[3].place, 0u);
  machine_->publish();
  EXPECT_EQ(entry.server->promises[3].place, place_in(0, 1));
  EXPECT_EQ(entry.server->promises[3].tail, entry.client->tail);
}

TEST_F(MachineStateTest, PromisesNothingBehindAHold) {
  ContextEntry& entry = context(session());
  push(entry, CommandOp::kHold, 1);
  spin(entry, 2, 1000);
  step(0);
  wait_for(entry, 2);
  machine_->publish();
  EXPECT_EQ(entry.server->promises[3].place, 0u);
}

TEST_F(MachineStateTest, HoldsAStreamUntilAnotherGpuHasComeThere) {
  Session& owner = session();
  ContextEntry& first = context(owner, 0);
  ContextEntry& second = context(owner, 1);
  spin(second, 1, 3000);
  push(first, CommandOp::kWait, 1, second.key, 0, 1);
  spin(first, 2, 1000);
  step(3500);
  EXPECT_EQ(first.server->done[0], 1u);
  step(499);
  EXPECT_EQ(first.server->done[0], 1u);
  step(1);
  EXPECT_EQ(first.server->done[0], 2u);
}

TEST_F(MachineStateTest, FinishesTheWorkOfAStreamThatWasClosed) {
  ContextEntry& entry = context(session());
  push(entry, CommandOp::kHold, 1);
  spin(entry, 2, 1000);
  push(entry, CommandOp::kCloseStream, 0);
  step(10);
  push(entry, CommandOp::kLetGo, 0, 1);
  step(10);
  EXPECT_EQ(entry.server->lost, 0u);
  EXPECT_EQ(entry.server->done[0], 1u);
  step(1000);
  EXPECT_EQ(entry.server->done[0], 2u);
  // The slot serves again, and its numbers go on.
  push(entry, CommandOp::kOpenStream, 0, 0, 2);
  spin(entry, 3, 1000);
  step(1000);
  EXPECT_EQ(entry.server->lost, 0u);
  EXPECT_EQ(entry.server->done[0], 3u);
}

TEST_F(MachineStateTest, LosesOnlyTheContextWhoseClientWritesNonsense) {
  ContextEntry& right = context(session());
  ContextEntry& wrong = context(session());
  spin(right, 1, 100);
  push(wrong, CommandOp::kLaunch, 1, 0, 0, 0);
  step(1000);
  EXPECT_NE(wrong.server->lost, 0u);
  EXPECT_EQ(right.server->lost, 0u);
  EXPECT_EQ(right.server->done[0], 1u);
}

// Property: whatever stands in a client's page, the server lives and the neighbour's work ends.
TEST_F(MachineStateTest, SurvivesAnyBytesInAClientsPage) {
  std::mt19937_64 random(31337);
  for (int round = 0; round < 200; ++round) {
    Session& hostile_owner = session();
    Session& right_owner = session();
    ContextEntry& hostile = context(hostile_owner);
    ContextEntry& right = context(right_owner);
    spin(right, 1, 100);
    auto* words = reinterpret_cast<std::uint64_t*>(&*hostile.client);
    for (int i = 0; i < 2000; ++i) {
      words[random() % (sizeof(ClientPage) / 8)] = random() >> random() % 64;
    }
    hostile.client->tail = static_cast<std::uint32_t>(random() % (2ul * kRingSlots));
    step(1'000'000'000);
    machine_->publish();
    [[maybe_unused]] const auto look = machine_->next_look();
    EXPECT_EQ(right.server->done[0], 1u) << "round " << round;
    machine_->end_session(hostile_owner.id);
    machine_->end_session(right_owner.id);
    ASSERT_EQ(machine_->device(0)->books.used_bytes(), 0u);
  }
}

TEST_F(MachineStateTest, FreesAllThatADeadSessionHeld) {
  Session& dead = session();
  Session& alive = session();
  context(dead);
  ContextEntry& entry = context(alive);
  ASSERT_TRUE(machine_->device(0)->books.take(dead.id, MemoryKind::kLinear, 10 * kMiB));
  ASSERT_TRUE(machine_->commit(dead, 40 * static_cast<std::int64_t>(kMiB)));
  EXPECT_FALSE(machine_->commit(alive, 40 * static_cast<std::int64_t>(kMiB)));
  machine_->end_session(dead.id);
  EXPECT_EQ(machine_->device(0)->books.used_bytes(), 100 * kMiB);
  EXPECT_TRUE(machine_->commit(alive, 40 * static_cast<std::int64_t>(kMiB)));
  spin(entry, 1, 10);
  step(10);
  EXPECT_EQ(entry.server->done[0], 1u);
}

TEST_F(MachineStateTest, RefusesAContextWhoseOverheadDoesNotFit) {
  Session& owner = session();
  ASSERT_TRUE(machine_->device(0)->books.take(owner.id, MemoryKind::kLinear, 930 * kMiB));
  const auto refused = machine_->open_context(owner, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExhausted);
  EXPECT_EQ(machine_->device(0)->books.used_bytes(), 930 * kMiB);
}

// Property: no request of any bytes brings the server down or the books out of balance.
TEST_F(MachineStateTest, AnswersAnyRequestWithoutHarm) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    Session& owner = i % 50 == 0 || machine_->sessions().empty()
                         ? session()
                         : *machine_->sessions().begin()->second;
    owner.greeted = random() % 4 != 0;
    std::vector<std::byte> payload(random() % 64);
    for (auto& byte : payload) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    std::vector<UniqueFd> fds;
    const auto op = static_cast<Op>(0x100 * (1 + random() % 6) + random() % 0x18);
    if (op == Op::kShutdown) continue;
    Call call{*machine_, owner, op, payload, fds, {}, {}, 0};
    handle(call);
    if (i % 50 == 49) machine_->end_session(machine_->sessions().begin()->first);
  }
  while (!machine_->sessions().empty()) {
    machine_->end_session(machine_->sessions().begin()->first);
  }
  EXPECT_EQ(machine_->device(0)->books.used_bytes(), 0u);
  EXPECT_EQ(machine_->device(1)->books.used_bytes(), 0u);
  EXPECT_EQ(machine_->blocks().size(), 0u);
}

}  // namespace
}  // namespace aliquot::simdriver
