#include "inventory/host.h"

#include <gtest/gtest.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::inventory {
namespace {

class HostTest : public testing::Test {
 protected:
  Host read() const { return read_host(sys_.sys(), proc_.sys()); }
  SysfsFixture sys_;
  SysfsFixture proc_;
};

TEST_F(HostTest, BareMetalWithTwoNodes) {
  proc_.file("sys/kernel/osrelease", "6.1.0-18-amd64\n");
  proc_.file("cpuinfo", "flags\t\t: fpu vme sse2\n");
  sys_.file("class/dmi/id/product_name", "DGX-1\n");
  for (const char* node : {"node0", "node1"}) {
    const std::string at = std::string("devices/system/node/") + node;
    sys_.file(at + "/cpulist", node[4] == '0' ? "0-19,40-59\n" : "20-39,60-79\n");
    sys_.file(at + "/distance", node[4] == '0' ? "10 21\n" : "21 10\n");
    sys_.file(at + "/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree:  12 kB\n");
  }
  sys_.file("devices/system/node/possible", "0-1\n");
  const Host host = read();
  EXPECT_EQ(host.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(host.hypervisor, "");
  EXPECT_EQ(host.product, "DGX-1");
  ASSERT_EQ(host.numa.size(), 2);
  EXPECT_EQ(host.numa[1].cpus, "20-39,60-79");
  EXPECT_EQ(host.numa[1].distances, (std::vector<unsigned>{21, 10}));
  EXPECT_EQ(host.numa[1].memory_bytes, 1u << 20);
}

TEST_F(HostTest, AGuestIsToldByItsProcessorAndNamedByItsFirmware) {
  proc_.file("cpuinfo", "flags\t\t: fpu hypervisor sse2\n");
  EXPECT_EQ(read().hypervisor, "unknown");
  sys_.file("class/dmi/id/sys_vendor", "Alibaba Cloud\n");
  EXPECT_EQ(read().hypervisor, "KVM");
}

TEST_F(HostTest, ABareMachineOfACloudIsNoGuest) {
  proc_.file("cpuinfo", "flags\t\t: fpu sse2\n");
  sys_.file("class/dmi/id/sys_vendor", "Amazon EC2\n");
  EXPECT_EQ(read().hypervisor, "");
}

TEST_F(HostTest, MpsRunsOnlyWhileItsDaemonLives) {
  EXPECT_EQ(read_mps(sys_.path("mps"), proc_.sys()), MpsState::kNone);
  sys_.file("mps/nvidia-cuda-mps-control.pid", "4711\n");
  EXPECT_EQ(read_mps(sys_.path("mps"), proc_.sys()), MpsState::kLeftover);
  proc_.file("4711/comm", "bash\n");
  EXPECT_EQ(read_mps(sys_.path("mps"), proc_.sys()), MpsState::kLeftover) << "the pid is reused";
  proc_.file("4711/comm", "nvidia-cuda-mps\n");
  EXPECT_EQ(read_mps(sys_.path("mps"), proc_.sys()), MpsState::kRuns);
  sys_.file("mps/nvidia-cuda-mps-control.pid", "junk");
  EXPECT_EQ(read_mps(sys_.path("mps"), proc_.sys()), MpsState::kLeftover);
}

}  // namespace
}  // namespace aliquot::inventory
