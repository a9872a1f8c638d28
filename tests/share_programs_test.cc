// Whole programs in a share: however they reach the driver, and with the library in either place,
// they see their share and are refused at its limit. A real broker; the interposer's test driver.
#include "support/share_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot {
namespace {

using test::SharePrograms;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1u << 20;

// 1024 MiB, of which a context takes the probe's 300.
constexpr char kSees[] = "main init=0 count=1 create=0 info=0 free=759169024 total=1073741824";
constexpr char kFills[] = "fill all=0 above=2 freed=0 again=0";

TEST_F(SharePrograms, EveryWayToTheDriverIsCaughtInEitherPlace) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  for (const std::string& environment : {preload(lease), in_place(lease), both(lease)}) {
    for (const char* way : {"dlopen", "deepbind", "dlmopen", "proc"})
      EXPECT_THAT(run(environment, std::string(ALIQUOT_PROGRAM " ") + way + " fill"),
                  testing::AllOf(HasSubstr(kSees), HasSubstr(kFills)))
          << way << " with " << environment;
    EXPECT_THAT(run(environment, ALIQUOT_LINKED_PROGRAM " linked fill"),
                testing::AllOf(HasSubstr(kSees), HasSubstr(kFills)))
        << environment;
  }
}

// What only standing in the driver's place catches: no look-up is asked (docs/adr/0031).
TEST_F(SharePrograms, APluginBoundToItsOwnLibrariesIsCaughtInTheDriversPlaceOnly) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  const std::string plugin = " DRIVER_PLUGIN=" ALIQUOT_PLUGIN;
  for (const std::string& environment : {in_place(lease), both(lease)})
    EXPECT_THAT(run(environment + plugin, ALIQUOT_PROGRAM " plugin fill"),
                testing::AllOf(HasSubstr(kSees), HasSubstr(kFills)))
        << environment;
  EXPECT_THAT(run(preload(lease) + plugin, ALIQUOT_PROGRAM " plugin"),
              testing::AllOf(HasSubstr("main init=0 count=4 create=0 info=0"),
                             Not(HasSubstr("total=1073741824"))));
}

TEST_F(SharePrograms, AShareOfMemoryAloneTakesNoThread) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  EXPECT_THAT(run(both(lease), ALIQUOT_PROGRAM " dlopen fill threads"),
              testing::AllOf(HasSubstr(kFills), HasSubstr("threads=1")));
}

// It asks the broker once to settle the dead, and waits a second at most for the answer.
TEST_F(SharePrograms, ARefusalDoesNotWaitForABrokerThatHangs) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  const std::string output =
      run(both(lease), ALIQUOT_PROGRAM " dlopen refused:" + std::to_string(broker_.pid()));
  int result = -1, ms = -1;
  const auto at = output.find("refused=");
  ASSERT_NE(at, std::string::npos) << output;
  ASSERT_EQ(std::sscanf(output.c_str() + at, "refused=%d ms=%d", &result, &ms), 2) << output;
  EXPECT_EQ(result, 2);
  EXPECT_GE(ms, 900) << "the broker was not asked";
  EXPECT_LT(ms, 2000);
  EXPECT_EQ(client().get_lease(lease.name)->gpus.at(0).refusals, 1u);
  EXPECT_THAT(run(both(lease), ALIQUOT_PROGRAM " dlopen fill"),
              testing::AllOf(HasSubstr(kSees), HasSubstr(kFills)));
}

// In the driver's place alone the program's own dlsym finds names that this driver lacks.
TEST_F(SharePrograms, OtherLookupsAreAnsweredAsWithoutUs) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  for (const std::string& environment : {preload(lease), both(lease)})
    EXPECT_THAT(run(environment, ALIQUOT_PROGRAM " dlopen lookups"),
                HasSubstr("lookups next=1 own=1 absent=1 error=1 unknown=1 versioned=1"));
}

TEST_F(SharePrograms, AForkedChildAttachesAnewAndIsCountedForItself) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  // Two contexts then: the parent's and the child's.
  const std::string output = run(preload(lease), ALIQUOT_PROGRAM " dlopen fork");
  EXPECT_THAT(output, HasSubstr("child init=0 count=1 create=0 info=0 free=444596224"));
  const std::string before = run(preload(lease), ALIQUOT_PROGRAM " dlopen fork-before");
  EXPECT_THAT(before,
              testing::AllOf(HasSubstr("child init=0 count=1 create=0 info=0 free=759169024"),
                             HasSubstr(kSees)));
}

// As the fork of a program or a library that does not use libc's: no handler of ours is called.
TEST_F(SharePrograms, AChildOfABareCloneAttachesAnewAndIsCountedForItself) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  const std::string output = run(preload(lease), ALIQUOT_PROGRAM " dlopen clone");
  EXPECT_THAT(output, HasSubstr("child init=0 count=1 create=0 info=0 free=444596224"));
  EXPECT_THAT(output, HasSubstr("child status=0, then free=759169024"));
}

// The child borrows the parent's memory until its exec; what it becomes is a process of its own.
TEST_F(SharePrograms, AfterVforkAndExecEachIsCountedForItself) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  const std::string output = run(preload(lease), ALIQUOT_PROGRAM " dlopen vfork");
  EXPECT_THAT(output, HasSubstr("main init=0 count=1 create=0 info=0 free=444596224"));
  EXPECT_THAT(output, HasSubstr("vfork status=0, then free=759169024"));
  EXPECT_THAT(
      run(preload(lease), ALIQUOT_PROGRAM " dlopen vfork-stranger fill"),
      testing::AllOf(HasSubstr("vfork-stranger status=0, then free=759169024"), HasSubstr(kFills)));
}

TEST_F(SharePrograms, WhatAChildInTheParentsMemoryTakesIsTheParents) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  EXPECT_THAT(run(preload(lease), ALIQUOT_PROGRAM " dlopen vm fill"),
              testing::AllOf(HasSubstr("vm status=0, then free=758120448"), HasSubstr("vm freed=0"),
                             HasSubstr(kFills)));
}

TEST_F(SharePrograms, AProgramThatReplacesItsDescriptorsKeepsThemAndItsShare) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  const std::string output = run(preload(lease), ALIQUOT_PROGRAM " dlopen reopen fill fork");
  EXPECT_THAT(output, testing::AllOf(HasSubstr(kSees), HasSubstr(kFills)));
  EXPECT_THAT(output, testing::AllOf(HasSubstr("child init=0"), HasSubstr("child descriptors=8")));
}

TEST_F(SharePrograms, OnlyTheLeasedGpusAreThereAndTheVariablesCountThose) {
  const auto lease = lease_on({"1", "3"}, 1024 * kMiB);
  const std::string environment = preload(lease);
  EXPECT_THAT(run(environment, ALIQUOT_PROGRAM " dlopen env"),
              testing::AllOf(HasSubstr("init=0 count=2"), HasSubstr("env unset")));
  EXPECT_THAT(run(environment + " CUDA_VISIBLE_DEVICES=1", ALIQUOT_PROGRAM " dlopen env"),
              testing::AllOf(HasSubstr("init=0 count=1"), HasSubstr("env 1")));
  EXPECT_THAT(run(environment + " CUDA_VISIBLE_DEVICES=3", ALIQUOT_PROGRAM " dlopen"),
              HasSubstr("init=100"));
}

TEST_F(SharePrograms, WithoutALeaseThereIsNoDeviceAndOneLineSaysWhy) {
  const std::string output =
      run("LD_PRELOAD=" ALIQUOT_LIBRARY " LD_LIBRARY_PATH=" ALIQUOT_FAKE_DIRECTORY,
          ALIQUOT_PROGRAM " dlopen");
  EXPECT_THAT(output,
              testing::AllOf(HasSubstr("init=100 count=-1 create=100"),
                             HasSubstr("aliquot: this program gets no GPU: it has no lease")));
  EXPECT_THAT(
      run("ALIQUOT_QUIET=1 LD_PRELOAD=" ALIQUOT_LIBRARY " LD_LIBRARY_PATH=" ALIQUOT_FAKE_DIRECTORY,
          ALIQUOT_PROGRAM " proc"),
      testing::AllOf(HasSubstr("init=100"), Not(HasSubstr("aliquot:"))));
}

TEST_F(SharePrograms, AProgramThatEndsLeavesNothingBehind) {
  const auto lease = lease_on({"0"}, 1024 * kMiB);
  run(preload(lease), ALIQUOT_PROGRAM " dlopen fill");
  EXPECT_TRUE(broker::eventually([&] {
    const auto row = client().get_lease(lease.name);
    return row && row->gpus.at(0).used_bytes == 0;
  }));
}

}  // namespace
}  // namespace aliquot
