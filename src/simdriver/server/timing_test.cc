// The times of a preset, worked out by hand and compared to the nanosecond: what programs and NVML
// see, in stepped time.
#include <gtest/gtest.h>
#include <unistd.h>

#include "driver_abi/nvml_constants.h"
#include "simdriver/presets.h"
#include "simdriver/server/handlers.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;
// Of the presets: docs/simulated-machine.md. A100: 108 SMs; T4: 12 GB/s to and from the host.
constexpr Nanoseconds kStart = 5 * kUs;    // from a launch to the first block, on an idle GPU
constexpr Nanoseconds kLatency = 8 * kUs;  // of a copy
constexpr Nanoseconds kSlice = 2 * kMs;
constexpr Nanoseconds kSwitch = 100 * kUs;  // the context left behind still has work
constexpr Nanoseconds kEasySwitch = 10 * kUs;
constexpr Nanoseconds kPeriod = 166'666'667;  // of NVML's samples, told 100 ms late
constexpr Nanoseconds kLag = 100 * kMs;

class Timing : public testing::Test {
 protected:
  void start(const std::string& node, bool mps = false) {
    clock_.advance(kSecond);
    MachineSpec spec =
        *make_machine({.node = node, .name = "lab", .cuda = ""}, *simulator_directory());
    spec.mps = mps;
    auto made = MachineState::make(std::move(spec), clock_, 1u << 30);
    ASSERT_TRUE(made);
    machine_ = std::move(*made);
    // Sample periods count from time 0; a round number of them has gone by.
    clock_.advance(6 * kPeriod - clock_.now());
    began_ = clock_.now();
  }
  Session& program(pid_t pid) {
    auto session = std::make_unique<Session>();
    session->pid = pid;
    session->uid = geteuid();
    return machine_->add_session(std::move(session));
  }
  ContextEntry& context(Session& owner, std::uint32_t gpu = 0, std::uint32_t percent = 100) {
    const auto opened = machine_->open_context(owner, gpu, percent);
    EXPECT_TRUE(opened);
    push(**opened, CommandOp::kOpenStream, {0, 0});
    return **opened;
  }
  void push(ContextEntry& entry, CommandOp op, std::array<std::uint64_t, 5> a) {
    const std::uint32_t tail = entry.client->tail;
    const bool counted = op != CommandOp::kOpenStream;
    entry.client->ring[tail % kRingSlots] = {
        clock_.now(), op, 0, 0, counted ? ++seq_[&entry] : 0, a};
    entry.client->tail = tail + 1;
  }
  void launch(ContextEntry& entry, std::uint64_t blocks, std::uint64_t per_sm,
              Nanoseconds block_ns) {
    push(entry, CommandOp::kLaunch, {blocks, per_sm, static_cast<std::uint64_t>(block_ns)});
  }
  void copy(ContextEntry& entry, std::uint64_t bytes, CopyKind kind) {
    push(entry, CommandOp::kCopy, {bytes, static_cast<std::uint64_t>(kind)});
  }
  // An event here; its time, counted from when the test began.
  std::uint32_t mark(ContextEntry& entry) {
    push(entry, CommandOp::kMark, {++marks_});
    mark_seq_[marks_] = seq_[&entry];
    return marks_;
  }
  Nanoseconds reached(ContextEntry& entry, std::uint32_t mark) {
    const auto& timeline = machine_->device(entry.device)->timeline;
    return timeline.mark(entry.key, {entry.key, 0, mark, mark_seq_[mark]}).value_or(-1) - began_;
  }
  void run_for(Nanoseconds by) {
    clock_.advance(by);
    machine_->catch_up();
  }
  template <typename Head, typename Request>
  Head ask(Session& asker, TelemetryOp op, const Request& request) {
    std::vector<UniqueFd> fds;
    Call call{*machine_, asker, static_cast<Op>(op), std::as_bytes(std::span(&request, 1)), fds, {},
              {},        0};
    EXPECT_EQ(handle(call), NVML_SUCCESS);
    reply_ = std::move(call.reply);
    Head head{};
    if (reply_.size() >= sizeof(head)) std::memcpy(&head, reply_.data(), sizeof(head));
    return head;
  }
  std::vector<Sample> samples(Session& asker, SampleKind kind) {
    const auto head = ask<SamplesReply>(asker, TelemetryOp::kSamples, SamplesRequest{0, kind, 0});
    std::vector<Sample> list(head.count);
    std::memcpy(list.data(), reply_.data() + sizeof(head), list.size() * sizeof(Sample));
    return list;
  }

  SteppedClock clock_;
  std::unique_ptr<MachineState> machine_;
  Nanoseconds began_ = 0;
  std::map<const ContextEntry*, std::uint64_t> seq_;
  std::map<std::uint32_t, std::uint64_t> mark_seq_;
  std::uint32_t marks_ = 0;
  std::vector<std::byte> reply_;
};

TEST_F(Timing, AProgramAloneTakesAStartWavesAndCopies) {
  start("a100x8");
  ContextEntry& entry = context(program(1));
  // 500 blocks, 2 an SM on 108 SMs: 216 at a time, so 3 waves.
  launch(entry, 500, 2, 40 * kUs);
  const auto first = mark(entry);
  launch(entry, 216, 2, 40 * kUs);
  const auto second = mark(entry);
  // 248 MB at 24.8 GB/s: 10 ms.
  copy(entry, 248'000'000, CopyKind::kHostToDevice);
  const auto third = mark(entry);
  run_for(20 * kMs);
  EXPECT_EQ(reached(entry, first), kStart + 3 * 40 * kUs);
  // The second was launched while the first ran: its start is over when its turn comes.
  EXPECT_EQ(reached(entry, second), kStart + 4 * 40 * kUs);
  EXPECT_EQ(reached(entry, third), kStart + 4 * 40 * kUs + kLatency + 10 * kMs);
}

TEST_F(Timing, TwoProgramsTakeTurnsAndPayForEachSwitch) {
  start("t4x1");
  ContextEntry& a = context(program(1));
  ContextEntry& b = context(program(2));
  // Each one kernel of 40 blocks, one an SM, 5 ms; a's start takes 5 us of its first slice, b's
  // is over before its turn.
  launch(a, 40, 1, 5 * kMs);
  const auto a_ended = mark(a);
  launch(b, 40, 1, 5 * kMs);
  const auto b_ended = mark(b);
  run_for(30 * kMs);
  // a 2, switch, b 2, switch, a 2, switch, b 2, switch, a 1.005: done. Easy switch, b 1.
  const Nanoseconds a_end = 4 * (kSlice + kSwitch) + kMs + kStart;
  EXPECT_EQ(reached(a, a_ended), a_end);
  EXPECT_EQ(reached(b, b_ended), a_end + kEasySwitch + kMs);
}

TEST_F(Timing, ClientsOfMpsRunSideBySideAndKeepTheirCeilings) {
  start("t4x1", true);
  ContextEntry& a = context(program(1));
  ContextEntry& b = context(program(2));
  // 20 blocks each, one an SM: both fit on the 40 SMs, nobody waits for a turn.
  launch(a, 20, 1, 5 * kMs);
  const auto a_ended = mark(a);
  launch(b, 20, 1, 5 * kMs);
  const auto b_ended = mark(b);
  run_for(10 * kMs);
  EXPECT_EQ(reached(a, a_ended), kStart + 5 * kMs);
  EXPECT_EQ(reached(b, b_ended), kStart + 5 * kMs);
  // 30 % of 40 SMs are 12: 24 blocks take two waves, and the 28 SMs that are left two of 56.
  ContextEntry& held = context(program(3), 0, 30);
  launch(held, 24, 1, 5 * kMs);
  const auto held_ended = mark(held);
  run_for(kUs);  // it comes first, and a's take what it leaves
  launch(a, 56, 1, 5 * kMs);
  const auto beside = mark(a);
  run_for(20 * kMs);
  EXPECT_EQ(reached(held, held_ended), 10 * kMs + kStart + 10 * kMs);
  EXPECT_EQ(reached(a, beside), 10 * kMs + kUs + kStart + 10 * kMs);
}

TEST_F(Timing, InstancesOfAGpuHaveATimeOfTheirOwn) {
  start("a100x1");
  Session& owner = program(1);
  unsigned parent = 0;
  unsigned own = 0;
  const auto change = [&](MigAction action, unsigned first, unsigned second) {
    return ask<MigChanged>(owner, TelemetryOp::kMigChange, MigChange{0, action, first, second}).id;
  };
  change(MigAction::kSwitchMode, 1, 0);
  parent = change(MigAction::kCreate, 9, kAnywhere);  // 3g.40gb: 42 SMs
  own = change(MigAction::kCreateCompute, parent, 3);
  ContextEntry& a = context(program(2), machine_->instance(0, parent, own)->number);
  parent = change(MigAction::kCreate, 19, kAnywhere);  // 1g.10gb: 14 SMs
  own = change(MigAction::kCreateCompute, parent, 1);
  ContextEntry& b = context(program(3), machine_->instance(0, parent, own)->number);
  launch(a, 84, 1, 3 * kMs);  // two waves
  const auto a_ended = mark(a);
  launch(b, 42, 1, 3 * kMs);  // three
  const auto b_ended = mark(b);
  run_for(20 * kMs);
  EXPECT_EQ(reached(a, a_ended), kStart + 6 * kMs);
  EXPECT_EQ(reached(b, b_ended), kStart + 9 * kMs);
}

TEST_F(Timing, CopiesOfOneProgramRunBesideKernelsOfAnother) {
  start("t4x1");
  ContextEntry& a = context(program(1));
  ContextEntry& b = context(program(2));
  launch(a, 40, 1, 5 * kMs);
  const auto a_ended = mark(a);
  copy(b, 36'000'000, CopyKind::kDeviceToHost);  // 12 GB/s: 3 ms
  const auto b_ended = mark(b);
  run_for(10 * kMs);
  EXPECT_EQ(reached(a, a_ended), 5 * kMs + kStart);
  EXPECT_EQ(reached(b, b_ended), 3 * kMs + kLatency);
}

TEST_F(Timing, AFaultEndsItsGpuAtOnceAndTouchesNoOther) {
  start("a100x8");
  Session& owner = program(1);
  ContextEntry& broken = context(owner, 0);
  ContextEntry& whole = context(owner, 1);
  launch(broken, 1, 1, 2 * kMs);
  const auto before = mark(broken);
  launch(broken, 1, 1, 10 * kMs);
  launch(whole, 1, 1, 10 * kMs);
  const auto elsewhere = mark(whole);
  run_for(3 * kMs);
  EXPECT_EQ(reached(broken, before), 2 * kMs + kStart);
  ask<int>(owner, TelemetryOp::kFault, FaultRequest{0, FaultKind::kXid, 13});
  EXPECT_EQ(broken.server->lost, 719u);
  EXPECT_EQ(broken.server->done[0], 2u);  // what had ended has ended
  run_for(20 * kMs);
  EXPECT_EQ(reached(whole, elsewhere), 10 * kMs + kStart);
  EXPECT_EQ(machine_->device(0)->timeline.engine().device_busy(clock_.now()), 3 * kMs);
}

TEST_F(Timing, NvmlTellsWholePercentsOfAPeriodAfterItsLag) {
  start("t4x1");
  Session& owner = program(77);
  ContextEntry& entry = context(owner);
  // 80.005 ms of 166.666667: 48.003 %, told as 48.
  launch(entry, 40, 1, 80 * kMs);
  run_for(kPeriod + kLag - 1);
  EXPECT_EQ(ask<GpuTelemetry>(owner, TelemetryOp::kGpu, TelemetryRequest{0}).gpu_percent, 0u);
  run_for(1);
  const auto now = ask<GpuTelemetry>(owner, TelemetryOp::kGpu, TelemetryRequest{0});
  EXPECT_EQ(now.gpu_percent, 48u);
  EXPECT_EQ(now.busy_ns, 80 * kMs + kStart);
  const std::vector<Sample> processes = samples(owner, SampleKind::kProcesses);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, 77);
  EXPECT_EQ(processes[0].percent, 48u);
  // The next period was idle: 0 of the GPU, and no sample of a process.
  run_for(kPeriod);
  EXPECT_EQ(ask<GpuTelemetry>(owner, TelemetryOp::kGpu, TelemetryRequest{0}).gpu_percent, 0u);
  EXPECT_EQ(samples(owner, SampleKind::kProcesses).size(), 1u);
}

TEST_F(Timing, TwoProgramsShareAPeriodLessTheSwitches) {
  start("t4x1");
  Session& one = program(1);
  Session& two = program(2);
  ContextEntry& a = context(one);
  ContextEntry& b = context(two);
  launch(a, 40, 1, kSecond);
  launch(b, 40, 1, kSecond);
  run_for(kPeriod + kLag);
  // A round of two slices and two switches is 4.2 ms: 39 whole rounds in the period, and 2.87 ms
  // more: a's slice and 0.77 ms of b's. a 80 ms: 47.99 %; b 78.77 ms: 47.26 %.
  const std::vector<Sample> processes = samples(one, SampleKind::kProcesses);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].percent, 47u);
  EXPECT_EQ(processes[1].percent, 47u);
  // The GPU was busy all but the switches: 158.77 of 166.67 ms.
  EXPECT_EQ(ask<GpuTelemetry>(one, TelemetryOp::kGpu, TelemetryRequest{0}).gpu_percent, 95u);
}

}  // namespace
}  // namespace aliquot::simdriver
