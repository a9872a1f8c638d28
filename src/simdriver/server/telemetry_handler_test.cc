#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "driver_abi/nvml_constants.h"
#include "simdriver/presets.h"
#include "simdriver/server/handlers.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

class TelemetryHandler : public testing::Test {
 protected:
  TelemetryHandler() { start(false); }
  void start(bool mps) {
    auto spec = make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
    spec->mps = mps;
    auto made = MachineState::make(std::move(*spec), clock_, 1u << 30);
    EXPECT_TRUE(made);
    machine_ = std::move(*made);
    auto session = std::make_unique<Session>();
    session->pid = 4711;
    session->uid = geteuid();
    session_ = &machine_->add_session(std::move(session));
  }

  template <typename Request>
  std::int32_t ask(TelemetryOp op, const Request& request) {
    std::vector<UniqueFd> fds;
    Call call{
        *machine_, *session_, static_cast<Op>(op), std::as_bytes(std::span(&request, 1)), fds, {},
        {},        0};
    const std::int32_t result = handle(call);
    reply_ = std::move(call.reply);
    return result;
  }
  template <typename T>
  T reply_at(std::size_t offset = 0) const {
    T value{};
    EXPECT_LE(offset + sizeof(T), reply_.size());
    std::memcpy(&value, reply_.data() + offset, sizeof(T));
    return value;
  }

  SteppedClock clock_;
  std::unique_ptr<MachineState> machine_;
  Session* session_ = nullptr;
  std::vector<std::byte> reply_;
};

TEST_F(TelemetryHandler, TellsMemoryAndTheProcessThatHoldsIt) {
  ASSERT_TRUE(machine_->device(1)->books.take(session_->id, MemoryKind::kLinear, 3u << 20));
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{1}), NVML_SUCCESS);
  const auto figures = reply_at<GpuTelemetry>();
  EXPECT_EQ(figures.used_bytes, 4u << 20);  // whole granules
  ASSERT_EQ(figures.process_count, 1u);
  const auto process = reply_at<ProcessTelemetry>(sizeof(GpuTelemetry));
  EXPECT_EQ(process.pid, 4711);
  EXPECT_EQ(process.used_bytes, 4u << 20);
  EXPECT_EQ(process.busy_ns, 0);
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<GpuTelemetry>().process_count, 0u);
}

TEST_F(TelemetryHandler, ConnectionsOfOneProcessAreOneProcess) {
  auto second = std::make_unique<Session>();
  second->pid = 4711;
  const SessionId other = machine_->add_session(std::move(second)).id;
  ASSERT_TRUE(machine_->device(0)->books.take(session_->id, MemoryKind::kLinear, 2u << 20));
  ASSERT_TRUE(machine_->device(0)->books.take(other, MemoryKind::kVmm, 2u << 20));
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<GpuTelemetry>().process_count, 1u);
  EXPECT_EQ(reply_at<ProcessTelemetry>(sizeof(GpuTelemetry)).used_bytes, 4u << 20);
}

TEST_F(TelemetryHandler, WithoutSwitchesNoneIsTold) {
  ASSERT_EQ(ask(TelemetryOp::kSwitches, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<SwitchesReply>().count, 0u);
  EXPECT_EQ(ask(TelemetryOp::kSwitches, TelemetryRequest{99}), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(TelemetryHandler, TimeCountsFromTheMachinesStart) {
  clock_.advance(5 * kSecond);
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<GpuTelemetry>().now_ns, 5 * kSecond);
  EXPECT_EQ(reply_at<GpuTelemetry>().busy_ns, 0);
}

TEST_F(TelemetryHandler, RefusesWhatIsNotARequest) {
  EXPECT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{2}), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(ask(TelemetryOp::kGpu, std::uint64_t{0}), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(ask(TelemetryOp::kSamples, SamplesRequest{0, static_cast<SampleKind>(9), 0}),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(ask(static_cast<TelemetryOp>(0x05ff), TelemetryRequest{0}),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(TelemetryHandler, OnlyTheOwnerAndRootChangeTheMachine) {
  const SetRequest request{0, Setting::kComputeMode, 3};
  session_->uid = geteuid() + 1;
  EXPECT_EQ(ask(TelemetryOp::kSet, request), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kXid, 79}),
            NVML_ERROR_NO_PERMISSION);
  session_->uid = geteuid();
  EXPECT_EQ(ask(TelemetryOp::kSet, request), NVML_SUCCESS);
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<GpuTelemetry>().compute_mode, 3u);
}

TEST_F(TelemetryHandler, RowsAndLinksGoWrongAndNoContextEnds) {
  const auto context = machine_->open_context(*session_, 0);
  ASSERT_TRUE(context);
  EXPECT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kRowRemap, 2}), NVML_SUCCESS);
  EXPECT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kLinkErrors, errors_of_link(3, 7)}),
            NVML_SUCCESS);
  EXPECT_EQ(
      ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kLinkErrors, errors_of_link(99, 7)}),
      NVML_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(ask(TelemetryOp::kGpu, TelemetryRequest{0}), NVML_SUCCESS);
  EXPECT_TRUE(stands(reply_at<GpuTelemetry>(), RowRemap::kFailed));
  EXPECT_EQ(reply_at<GpuTelemetry>().link_errors[3], 7u);
  EXPECT_EQ((*context)->server->lost, 0u);
  ASSERT_EQ(ask(TelemetryOp::kEvents, EventsRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<EventsReply>().count, 0u);  // who wants the XID too orders it
}

TEST_F(TelemetryHandler, AFatalXidEndsTheContextsOfItsGpuAlone) {
  auto first = machine_->open_context(*session_, 0);
  auto second = machine_->open_context(*session_, 1);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kXid, 63}), NVML_SUCCESS);
  EXPECT_EQ((*first)->server->lost, 0u);  // row remapping is only reported
  ASSERT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kXid, 31}), NVML_SUCCESS);
  EXPECT_EQ((*first)->server->lost, 700u);  // illegal address
  EXPECT_EQ((*second)->server->lost, 0u);
  ASSERT_EQ(ask(TelemetryOp::kEvents, EventsRequest{0}), NVML_SUCCESS);
  EXPECT_EQ(reply_at<EventsReply>().count, 2u);
  EXPECT_EQ(reply_at<GpuEvent>(sizeof(EventsReply)).data, 63u);
}

TEST_F(TelemetryHandler, EveryFatalXidEndsContextsWithItsError) {
  const std::map<std::uint64_t, std::uint32_t> documented = {
      {13, 719}, {31, 700}, {43, 719}, {45, 719}, {48, 214}, {62, 999},
      {74, 220}, {79, 999}, {94, 214}, {95, 214}, {119, 999}};
  for (std::uint64_t xid = 1; xid < 150; ++xid) {
    start(false);
    const auto context = machine_->open_context(*session_, 0);
    ASSERT_TRUE(context);
    ASSERT_EQ(ask(TelemetryOp::kFault, FaultRequest{0, FaultKind::kXid, xid}), NVML_SUCCESS);
    const auto known = documented.find(xid);
    EXPECT_EQ((*context)->server->lost, known == documented.end() ? 0 : known->second) << xid;
    ASSERT_EQ(ask(TelemetryOp::kEvents, EventsRequest{0}), NVML_SUCCESS);
    EXPECT_EQ(reply_at<GpuEvent>(sizeof(EventsReply)).data, xid);
  }
}

TEST_F(TelemetryHandler, ComputeModesLetInWhomTheyShould) {
  auto other = std::make_unique<Session>();
  other->pid = 4712;
  other->uid = geteuid();
  Session& second = machine_->add_session(std::move(other));
  session_->greeted = true;
  second.greeted = true;
  const auto open = [&](Session& who) {
    session_ = &who;
    return ask(static_cast<TelemetryOp>(Op::kContextCreate), ContextRequest{0, 0, 100});
  };
  Session& first = *session_;
  ASSERT_EQ(ask(TelemetryOp::kSet, SetRequest{0, Setting::kComputeMode, 3}), NVML_SUCCESS);
  EXPECT_EQ(open(first), kSuccess);
  EXPECT_EQ(open(first), kSuccess);  // one process, several contexts
  EXPECT_EQ(open(second), kDeviceUnavailable);
  ASSERT_EQ(ask(TelemetryOp::kSet, SetRequest{0, Setting::kComputeMode, 0}), NVML_SUCCESS);
  EXPECT_EQ(open(second), kSuccess);
  ASSERT_EQ(ask(TelemetryOp::kSet, SetRequest{0, Setting::kComputeMode, 2}), NVML_SUCCESS);
  EXPECT_EQ(open(first), kDeviceUnavailable);
}

TEST_F(TelemetryHandler, MpsIsOneProcessToAComputeModeAndTakesSoManyClients) {
  start(true);
  ASSERT_EQ(ask(TelemetryOp::kSet, SetRequest{0, Setting::kComputeMode, 3}), NVML_SUCCESS);
  const auto open = static_cast<TelemetryOp>(Op::kContextCreate);
  for (int i = 0; i < 48; ++i) {
    auto client = std::make_unique<Session>();
    client->pid = 5000 + i;
    client->greeted = true;
    session_ = &machine_->add_session(std::move(client));
    ASSERT_EQ(ask(open, ContextRequest{0, 0, 100}), kSuccess) << i;
  }
  EXPECT_EQ(ask(open, ContextRequest{0, 0, 100}), kMpsMaxClientsReached);
  EXPECT_EQ(ask(open, ContextRequest{1, 0, 100}), kSuccess);  // of the other GPU
}

TEST_F(TelemetryHandler, ALostGpuOpensNoContextUntilItIsBack) {
  session_->greeted = true;
  const auto open = static_cast<TelemetryOp>(Op::kContextCreate);
  ASSERT_EQ(ask(TelemetryOp::kFault, FaultRequest{1, FaultKind::kGpuLost, 0}), NVML_SUCCESS);
  EXPECT_EQ(ask(open, ContextRequest{1, 0, 100}), kDeviceUnavailable);
  EXPECT_EQ(ask(open, ContextRequest{0, 0, 100}), kSuccess);
  ASSERT_EQ(ask(TelemetryOp::kFault, FaultRequest{1, FaultKind::kNone, 0}), NVML_SUCCESS);
  EXPECT_EQ(ask(open, ContextRequest{1, 0, 100}), kSuccess);
}

}  // namespace
}  // namespace aliquot::simdriver
