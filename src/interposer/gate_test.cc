// The gate under a hand-written grant and ledger: who may pass, who waits, what the broker reads.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "interposer/testing/gated_share.h"

namespace aliquot::interposer::testing {
namespace {

using namespace std::chrono_literals;

// A launch by a thread of its own, in the context of the test.
std::future<CUresult> launch_elsewhere(CUcontext context, CUfunction function = kNoFunction) {
  return std::async(std::launch::async, [=] {
    cuCtxSetCurrent(context);
    return launch(function);
  });
}
bool waits(std::future<CUresult>& launched) {
  return launched.wait_for(50ms) == std::future_status::timeout;
}
CUfunction function_of(std::uintptr_t name) { return reinterpret_cast<CUfunction>(name); }

TEST(Gate, PassesWhereNoGateWasEverSetUp) {
  GatedShare share;
  share.lease.grant.gpu[0].window = 0;
  share.begin();
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(share.launches(), 1u);
  EXPECT_EQ(share.demand(), 0u);
}

TEST(Gate, OpenAndAloneAddsNoCallOnceTheKernelIsKnown) {
  GatedShare share;
  share.open_alone();
  share.begin();
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  ASSERT_TRUE(eventually([&] {
    return quick_gates[0].load()->tenant.estimate(gate::kernel_key({})) == 10 * kMicrosecond;
  }));
  std::map<std::string, std::uint64_t> before;
  {
    const std::scoped_lock lock(share.fake.mutex);
    before = share.fake.calls;
  }
  for (int i = 0; i < 20; ++i) ASSERT_EQ(launch(), CUDA_SUCCESS);
  before["cuLaunchKernel"] += 20;
  const std::scoped_lock lock(share.fake.mutex);
  share.fake.calls.erase("cuEventQuery");
  before.erase("cuEventQuery");  // the watcher's
  EXPECT_EQ(share.fake.calls, before);
}

TEST(Gate, AloneEachNewKernelIsMeasuredOnce) {
  GatedShare share;
  share.open_alone();
  share.begin();
  for (std::uintptr_t name = 1; name <= 3; ++name) {
    ASSERT_EQ(launch(function_of(name)), CUDA_SUCCESS);
    EXPECT_TRUE(eventually([&] {
      return gate_state(0)->tenant.knows(gate::kernel_key({.function = name}));
    })) << name;
    ASSERT_EQ(launch(function_of(name)), CUDA_SUCCESS);
  }
  EXPECT_EQ(share.calls("cuEventRecord"), 6u);
}

TEST(Gate, ClosedHoldsALaunchUntilTheBrokerOpens) {
  GatedShare share;
  const CUcontext context = share.begin();
  auto launched = launch_elsewhere(context);
  EXPECT_TRUE(waits(launched));
  EXPECT_EQ(share.calls("cuLaunchKernel"), 0u);
  EXPECT_EQ(share.report().waiting, 1u);
  EXPECT_GE(share.demand(), 1u);
  share.open_for(1 * kSecond, 1);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
  EXPECT_EQ(share.report().waiting, 0u);
  EXPECT_GT(share.lease.view.cell(Share::kSlot, 0).waiting_ns, 0u);
}

TEST(Gate, AWaiterAsksTheBrokerAgain) {
  GatedShare share;
  auto launched = launch_elsewhere(share.begin());
  EXPECT_TRUE(eventually([&] { return share.demand() >= 3; }));
  share.open_alone();
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
}

TEST(Gate, AGateWithoutALivingBrokerRefusesAfterThreeSecondsAndThenAtOnce) {
  GatedShare share;
  share.begin();
  share.sign_of_life(monotonic_now() - 4 * kSecond);
  const Nanoseconds began = monotonic_now();
  EXPECT_EQ(launch(), CUDA_ERROR_LAUNCH_FAILED);
  const Nanoseconds broken = monotonic_now();
  EXPECT_GE(broken - began, 3 * kSecond);
  EXPECT_EQ(launch(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_LT(monotonic_now() - broken, 1 * kSecond);
  EXPECT_EQ(share.refused(), 2u);
  EXPECT_EQ(share.calls("cuLaunchKernel"), 0u);
  share.open_alone();  // the next broker
  EXPECT_EQ(launch(), CUDA_SUCCESS);
}

TEST(Gate, AnOpenGateNeedsNoBroker) {
  GatedShare share;
  share.begin();
  share.sign_of_life(1);
  share.open_alone();
  EXPECT_EQ(launch(), CUDA_SUCCESS);
}

TEST(Gate, AWindowAdmitsOneUnknownKernelAndHoldsTheNextUntilItEnds) {
  GatedShare share;
  const CUcontext context = share.begin();
  share.fake.work_ends = false;
  share.open_for(1 * kSecond, 7);
  const Nanoseconds began = monotonic_now();
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(share.report().in_flight, 1u);
  // What was never measured counts as 5 ms; the next goes 300 us before that is over.
  auto second = launch_elsewhere(context);
  EXPECT_EQ(second.get(), CUDA_SUCCESS);
  EXPECT_GT(monotonic_now() - began, 4500 * kMicrosecond);
}

TEST(Gate, WorkThatEndsLetsTheNextOneGo) {
  GatedShare share;
  const CUcontext context = share.begin();
  share.fake.work_ends = false;
  share.fake.kernel_ms = 1000;
  share.open_for(100 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  share.fake.finish_work();
  ASSERT_TRUE(eventually([&] { return share.report().in_flight == 0; }));
  ASSERT_EQ(launch(), CUDA_SUCCESS);  // known to take a second now
  auto third = launch_elsewhere(context);
  EXPECT_TRUE(waits(third));
  share.fake.finish_work();
  EXPECT_EQ(third.get(), CUDA_SUCCESS);
}

TEST(Gate, TellsTheBrokerThatItHasDrained) {
  GatedShare share;
  share.begin();
  share.fake.work_ends = false;
  share.open_for(1 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  share.close();
  std::this_thread::sleep_for(20ms);
  const std::uint32_t before = share.demand();
  share.fake.finish_work();
  EXPECT_TRUE(eventually([&] { return share.demand() > before; }));
  EXPECT_EQ(share.report().in_flight, 0u);
  EXPECT_GT(share.report().busy_ns, 10 * kMillisecond);
  EXPECT_EQ(share.report().busy_since, 0);
}

TEST(Gate, TellsTheBrokerOfSilence) {
  GatedShare share;
  share.begin();
  share.open_for(10 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  // The take-over, and silence; nothing more.
  EXPECT_TRUE(eventually([&] { return share.demand() == 2; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(share.demand(), 2u);
}

TEST(Gate, CapturedWorkPassesAClosedGateAndNothingIsAskedAroundIt) {
  GatedShare share;
  share.begin();
  const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{0x70});
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(launch(kNoFunction, stream), CUDA_SUCCESS);
  EXPECT_EQ(
      share.calls("cuEventCreate") + share.calls("cuEventRecord") + share.calls("cuEventQuery"),
      0u);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(share.demand(), 0u);
  share.open_alone();
  EXPECT_EQ(launch(kNoFunction, stream), CUDA_SUCCESS);
  EXPECT_EQ(share.calls("cuStreamIsCapturing"), 1u);  // not asked when nothing is captured
}

// A graph of `kernels` nodes, all the same kernel.
CUgraphExec graph_of(int kernels) {
  CUgraph graph = nullptr;
  cuGraphCreate(&graph, 0);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.grid_x = params.grid_y = params.grid_z = 1;
  params.block_x = params.block_y = params.block_z = 1;
  CUgraphNode node = nullptr;
  for (int i = 0; i < kernels; ++i) cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params);
  CUgraphExec made = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&made, graph, 0), CUDA_SUCCESS);
  return made;
}

TEST(Gate, AGraphIsTakenToLastAsLongAsItsKernelsDid) {
  GatedShare share;
  share.begin();
  share.fake.kernel_ms = 2;
  share.open_for(100 * kSecond, 1);
  // One launch of the kernel by itself is measured.
  ASSERT_EQ(cuLaunchKernel(kNoFunction, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return share.report().in_flight == 0; }));
  const Work graph = work_of(driver_abi::Cuda::cuGraphLaunch, graph_of(50), CUstream{});
  EXPECT_EQ(graph.assumed_ns, 100 * kMillisecond);
}

TEST(Gate, AGraphOfUnknownKernelsCountsEachOfThem) {
  GatedShare share;
  share.begin();
  share.fake.work_ends = false;
  share.open_for(100 * kSecond, 1);
  ASSERT_EQ(cuGraphLaunch(graph_of(2000), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share.report().outstanding_ns, 20 * kMillisecond);
}

TEST(Gate, AGraphAtTheAddressOfAnEarlierOneIsNotTakenForIt) {
  GatedShare share;
  share.begin();
  share.fake.kernel_ms = 700;
  share.open_for(100 * kSecond, 1);
  const CUgraphExec graph = graph_of(3);
  const Work before = work_of(driver_abi::Cuda::cuGraphLaunch, graph, CUstream{});
  ASSERT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
  const Work gone = work_of(driver_abi::Cuda::cuGraphLaunch, graph, CUstream{});
  EXPECT_NE(before.key, gone.key);
  EXPECT_EQ(before.assumed_ns, 5 * kMillisecond);
  EXPECT_EQ(gone.assumed_ns, 0);
}

TEST(Gate, WorkBesideACaptureIsGatedAndMakesNoEvents) {
  GatedShare share;
  const CUcontext context = share.begin();
  ASSERT_EQ(cuStreamBeginCapture_v2(reinterpret_cast<CUstream>(std::uintptr_t{0x70}),
                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            CUDA_SUCCESS);
  auto launched = launch_elsewhere(context);
  EXPECT_TRUE(waits(launched));
  share.open_for(1 * kSecond, 1);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
  EXPECT_EQ(share.calls("cuEventCreate"), 0u);
}

TEST(Gate, AFailedLaunchLeavesNothingInFlight) {
  GatedShare share;
  share.begin();
  share.open_for(1 * kSecond, 1);
  share.fake.fail["cuLaunchKernel"] = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(launch(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(share.report().in_flight, 0u);
  EXPECT_EQ(share.launches(), 0u);
}

TEST(Gate, AContextThatEndsTakesItsWorkAlong) {
  GatedShare share;
  const CUcontext context = share.begin();
  share.fake.work_ends = false;
  share.open_for(10 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(share.report().in_flight, 1u);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(share.report().in_flight, 0u);
  EXPECT_EQ(share.calls("cuEventCreate"), share.calls("cuEventDestroy_v2"));
}

TEST(Gate, ManyThreadsOfAClosedGateAllPassWhenItOpens) {
  GatedShare share;
  const CUcontext context = share.begin();
  std::vector<std::future<CUresult>> launched;
  for (std::uintptr_t i = 1; i <= 8; ++i)
    launched.push_back(launch_elsewhere(context, function_of(i)));
  EXPECT_TRUE(eventually([&] { return share.report().waiting == 8; }));
  share.open_alone();
  for (auto& one : launched) EXPECT_EQ(one.get(), CUDA_SUCCESS);
  EXPECT_EQ(share.launches(), 8u);
}

TEST(Gate, OneKernelAWindowForAllProcessesOfTheLease) {
  GatedShare share;
  const CUcontext context = share.begin();
  share.lease.view.gpu(0).gate[1] = 5;  // another process had it
  share.open_for(1 * kMillisecond, 5);
  auto launched = launch_elsewhere(context);
  EXPECT_TRUE(waits(launched));
  share.open_for(1 * kMillisecond, 6);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
  EXPECT_EQ(share.lease.view.gpu(0).gate[1], 6u);
}

TEST(Gate, WhatOtherProcessesHaveInFlightCounts) {
  GatedShare share;
  const CUcontext context = share.begin();
  wire::Cell& other = share.lease.view.cell(9, 0);
  share.lease.view.gpu(0).gate[0] = 10;
  share.lease.view.gpu(0).gate[1] = 1;
  gate::publish(gate::TenantReport{.last_launch = monotonic_now(),
                                   .since = monotonic_now() + kSecond,
                                   .in_flight = 1,
                                   .outstanding_ns = 100 * kMillisecond},
                other.demand, other.gate);
  share.open_for(10 * kSecond, 1);
  auto launched = launch_elsewhere(context);
  EXPECT_TRUE(waits(launched));  // the limiter: a second process may not double what is queued
  gate::publish(gate::TenantReport{}, other.demand, other.gate);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
}

TEST(Marks, AnEndThatIsSeenLateIsTakenAsForetold) {
  const Mark mark{.estimate_ns = 500, .running_at = 1'200};
  EXPECT_EQ(ended_at(mark, 1'000, 1'600), 1'500);
  EXPECT_EQ(ended_at(mark, 1'000, 1'300), 1'300);  // sooner than foretold
  EXPECT_EQ(ended_at(mark, 500, 1'600), 1'200);    // it was running then
}

TEST(Gate, WorkBesideAPeersCountsItsOwnTime) {
  GatedShare share;
  share.begin();
  share.fake.work_ends = false;
  wire::Cell& other = share.lease.view.cell(9, 0);
  share.lease.view.gpu(0).gate[0] = 10;
  gate::publish(
      gate::TenantReport{
          .since = monotonic_now(), .in_flight = 1, .outstanding_ns = 1, .head_ns = 1},
      other.demand, other.gate);
  share.open_for(10 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_NE(share.report().busy_since, 0);
}

TEST(Gate, EachDecisionBesidePeersIsCounted) {
  GatedShare share;
  share.begin();
  share.lease.view.gpu(0).gate[0] = 10;
  wire::Cell& other = share.lease.view.cell(9, 0);
  gate::publish(gate::TenantReport{}, other.demand, other.gate);
  share.open_for(10 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(share.lease.view.gpu(0).gate[2], 1u);
}

TEST(Gate, APeerThatDecidesForEverHoldsNobodyUp) {
  GatedShare share;
  const CUcontext context = share.begin();
  share.lease.view.gpu(0).gate[0] = 10;
  share.lease.view.gpu(0).gate[1] = 1;
  wire::Cell& other = share.lease.view.cell(9, 0);
  gate::publish(gate::TenantReport{}, other.demand, other.gate);
  share.open_for(10 * kSecond, 1);
  std::atomic<bool> stop{false};
  std::thread peer([&] {
    while (!stop) share.lease.view.gpu(0).gate[2].fetch_add(1);
  });
  auto launched = launch_elsewhere(context);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
  stop = true;
  peer.join();
}

TEST(Gate, AForkedChildStartsAnew) {
  GatedShare share;
  share.begin();
  share.fake.work_ends = false;
  share.open_for(10 * kSecond, 1);
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  const pid_t child = share.fork_between_calls();
  if (child == 0) {
    forget_process();
    share.attach();
    const bool clean = quick_gates[0].load() == nullptr && launch() == CUDA_SUCCESS;
    _exit(clean ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Gate, EachGpuHasAGateOfItsOwn) {
  GatedShare share(2);
  share.begin(0);
  share.open_alone(0);
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  auto launched = launch_elsewhere(share.begin(1));
  EXPECT_TRUE(waits(launched));
  share.open_alone(1);
  EXPECT_EQ(launched.get(), CUDA_SUCCESS);
  EXPECT_EQ(share.launches(0), 1u);
  EXPECT_EQ(share.launches(1), 1u);
}

TEST(Gate, SlowMotionStretchesEveryTime) {
  GatedShare share;
  share.lease.grant.gpu[0].time_scale_micro = 100'000;  // a tenth
  share.begin();
  share.open_alone();
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  const gate::TenantOptions& options = gate_state(0)->tenant.options();
  EXPECT_EQ(options.silence, 10 * gate::TenantOptions{}.silence);
  EXPECT_EQ(options.in_flight_limit, 10 * gate::TenantOptions{}.in_flight_limit);
  // The event says 10 us of the machine.
  EXPECT_TRUE(eventually(
      [&] { return gate_state(0)->tenant.estimate(gate::kernel_key({})) == 100 * kMicrosecond; }));
}

TEST(Gate, AnOnlineTenantTellsOfEachBurst) {
  GatedShare share;
  share.lease.grant.gpu[0].share_class = static_cast<std::uint32_t>(wire::ShareClass::kOnline);
  share.begin();
  share.open_alone();
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  ASSERT_TRUE(eventually([&] { return share.demand() >= 2; }));  // its begin, its end
  const std::uint32_t before = share.demand();
  ASSERT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(share.demand(), before + 1);
}

}  // namespace
}  // namespace aliquot::interposer::testing
