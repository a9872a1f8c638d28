#include "node/unleased.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

constexpr const char* kUid = "0f2c9a4e-1b2c-4d3e-8f90-a1b2c3d4e5f6";

LatestReading gpu_with(std::initializer_list<std::int32_t> pids) {
  LatestReading latest;
  latest.uuid = "GPU-a";
  latest.reading.emplace();
  for (const std::int32_t pid : pids)
    latest.reading->state.processes.push_back({pid, 100, inventory::ProcessKind::kCompute});
  return latest;
}

TEST(UnleasedProcesses, ThePodIsToldByTheCgroupOfEitherDriver) {
  EXPECT_EQ(pod_uid_of("0::/kubepods/burstable/pod0f2c9a4e-1b2c-4d3e-8f90-a1b2c3d4e5f6/4f\n"),
            kUid);
  EXPECT_EQ(
      pod_uid_of("0::/kubepods.slice/kubepods-pod0f2c9a4e_1b2c_4d3e_8f90_a1b2c3d4e5f6.slice/x"),
      kUid);
  EXPECT_EQ(pod_uid_of("3:cpu:/k/pod0123456789abcdef0123456789abcdef/c\n"),
            "0123456789abcdef0123456789abcdef");
  for (const char* text :
       {"", "0::/user.slice\n", "0::/podman/pod123/x\n", "0::/kubepods/poder/\n"})
    EXPECT_EQ(pod_uid_of(text), "") << text;
}

TEST(UnleasedProcesses, OnlyThoseThatNoLeaseKnowsAndThatStillLive) {
  broker::LeaseRow lease;
  lease.rows.push_back({10, 0, {}});
  const auto found = unleased_processes({gpu_with({10, 11, 12})}, {lease}, [](std::int32_t pid) {
    return pid == 12 ? "" : std::string("0::/kubepods/pod") + kUid + "/c\n";
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 11);
  EXPECT_EQ(found[0].uuid, "GPU-a");
  EXPECT_EQ(found[0].pod_uid, kUid);
  EXPECT_EQ(found[0].bytes, 100u);
}

TEST(UnleasedProcesses, AGpuThatNeverAnsweredSaysNothing) {
  EXPECT_TRUE(unleased_processes({LatestReading{}}, {}, [](std::int32_t) { return "x"; }).empty());
}

}  // namespace
}  // namespace aliquot::node
