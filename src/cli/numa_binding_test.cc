// Against a /sys of the test's own; what is bound is read back from the kernel.
#include "cli/numa_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "inventory/sysfs_fixture.h"

namespace aliquot::cli {
namespace {

using testing::HasSubstr;

struct NumaBindingTest : testing::Test {
  NumaBindingTest() {
    node(0, "0-1,4", 1024);
    node(1, "2-3", 0);
    device("0000:07:00.0", "0");
    device("0000:4e:00.0", "1");
    device("0000:90:00.0", "-1");
  }
  void node(int number, const std::string& cpus, int memory_kb) {
    const std::string at = "devices/system/node/node" + std::to_string(number);
    fixture.file(at + "/cpulist", cpus + "\n");
    fixture.file(at + "/distance", "10 21\n");
    fixture.file(at + "/meminfo", "Node " + std::to_string(number) +
                                      " MemTotal: " + std::to_string(memory_kb) + " kB\n");
  }
  void device(const std::string& bus_id, const std::string& numa) {
    fixture.file("bus/pci/devices/" + bus_id + "/numa_node", numa + "\n");
  }
  static inventory::NvmlGpu gpu(const std::string& bus_id) {
    inventory::NvmlGpu gpu;
    gpu.uuid = "GPU-" + bus_id;
    gpu.bus_id = bus_id;
    return gpu;
  }
  inventory::SysfsFixture fixture;
};

TEST_F(NumaBindingTest, TheNodesOfAllGpusWithTheirCpusAndTheMemoryTheyHave) {
  EXPECT_EQ(near_gpus({gpu("00000000:07:00.0")}, fixture.sys()).value(),
            (NumaBinding{{0}, {0}, {0, 1, 4}}));
  EXPECT_EQ(near_gpus({gpu("00000000:4E:00.0"), gpu("00000000:07:00.0")}, fixture.sys()).value(),
            (NumaBinding{{0, 1}, {0}, {0, 1, 2, 3, 4}}));
}

TEST_F(NumaBindingTest, WhereTheKernelDoesNotSayTheDriverMay) {
  inventory::NvmlGpu told = gpu("00000000:90:00.0");
  told.numa = 1;
  EXPECT_EQ(near_gpus({told}, fixture.sys()).value().nodes, std::vector<unsigned>{1});
}

TEST_F(NumaBindingTest, AnUnknownNodeIsAnErrorThatSaysWhatToDo) {
  const auto unknown = near_gpus({gpu("00000000:90:00.0")}, fixture.sys());
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("does not tell its NUMA node"));
  EXPECT_THAT(unknown.error().message, HasSubstr("--numa off"));
  inventory::NvmlGpu elsewhere = gpu("00000000:91:00.0");
  elsewhere.numa = 7;
  EXPECT_THAT(near_gpus({elsewhere}, fixture.sys()).error().message,
              HasSubstr("NUMA node 7: its CPUs are not told"));
}

// The status of a child, so that the test itself stays where it is.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BindHere, TheProcessIsOnTheCpusAndTheMemoryOfTheBinding) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  unsigned cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  const int result = in_child([cpu] {
    if (!bind_here({{0}, {0}, {cpu, 4000}})) return 1;
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) != 0) return 2;
    if (CPU_COUNT(&now) != 1 || !CPU_ISSET(cpu, &now)) return 3;
    int policy = -1;
    unsigned long nodes[16] = {};
    if (syscall(SYS_get_mempolicy, &policy, nodes, sizeof nodes * 8, nullptr, 0) != 0)
      return errno == ENOSYS ? 0 : 4;
    return policy == MPOL_BIND && nodes[0] == 1 ? 0 : 5;
  });
  EXPECT_EQ(result, 0);
}

TEST(BindHere, CpusThatTheProcessMayNotUseAreAnError) {
  EXPECT_EQ(in_child([] {
              const Status bound = bind_here({{3}, {}, {4001}});
              return !bound && bound.error().message.find("NUMA node 3") != std::string::npos ? 0
                                                                                              : 1;
            }),
            0);
}

}  // namespace
}  // namespace aliquot::cli
