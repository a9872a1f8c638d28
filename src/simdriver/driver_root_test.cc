#include "simdriver/driver_root.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/files.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

class DriverRootTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char pattern[] = "/tmp/aliquot-root-XXXXXX";
    state_ = mkdtemp(pattern);
    setenv("ALIQUOT_STATE_DIR", state_.c_str(), 1);
    const auto simulator = simulator_directory();
    ASSERT_TRUE(simulator) << simulator.error().message;
    const auto spec = make_machine({"a100x2", "test", ""}, *simulator);
    ASSERT_TRUE(spec) << spec.error().message;
    const auto machine = start_machine(*spec, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = *machine;
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(stop_machine("test"));
    fs::remove_all(state_);
  }
  void SetUp() override {
    directory_ = state_ / testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  Result<DriverRoot> lay_out() { return lay_out_driver_root(machine_, "/bin/true", directory_); }

  static inline fs::path state_;
  static inline RunningMachine machine_;
  fs::path directory_;
};

TEST_F(DriverRootTest, HasTheDriversFilesWhereToolsLookForThem) {
  ASSERT_TRUE(lay_out());
  for (const char* file : {"libcuda.so", "libcuda.so.1", "libcuda.so.580.65.06",
                           "libnvidia-ml.so.1", "libnvidia-ml.so.580.65.06"})
    EXPECT_TRUE(fs::exists(directory_ / "usr/lib/x86_64-linux-gnu" / file)) << file;
  EXPECT_EQ(access((directory_ / "usr/bin/nvidia-smi").c_str(), X_OK), 0);
  const auto version = read_file(directory_ / "proc/driver/nvidia/version");
  ASSERT_TRUE(version);
  EXPECT_NE(version->find("580.65.06  (simulated"), std::string::npos) << *version;
  const auto gpu = read_file(directory_ / "proc/driver/nvidia/gpus/0000:0f:00.0/information");
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto spec = read_machine(machine_.directory / "machine.json");
  EXPECT_NE(gpu->find("GPU UUID: \t " + gpu_uuid_text(spec->gpus[1].uuid) + '\n'),
            std::string::npos);
}

TEST_F(DriverRootTest, HasLibrariesThatFindTheirMachine) {
  ASSERT_TRUE(lay_out());
  void* library = dlopen((directory_ / "usr/lib/x86_64-linux-gnu/libcuda.so.1").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
  ASSERT_EQ(init(0), 0);
  int gpus = 0;
  ASSERT_EQ(count(&gpus), 0);
  EXPECT_EQ(gpus, 2);
}

TEST_F(DriverRootTest, HasDeviceNodesOrSaysWhyNot) {
  const auto root = lay_out();
  ASSERT_TRUE(root);
  struct stat node{};
  const bool there = stat((directory_ / "dev/nvidia1").c_str(), &node) == 0;
  EXPECT_EQ(there, root->why_no_device_nodes.empty()) << root->why_no_device_nodes;
  EXPECT_EQ(root->device_nodes, there ? 5u : 0u);
  if (!there) GTEST_SKIP() << "no device nodes here: " << root->why_no_device_nodes;
  EXPECT_TRUE(S_ISCHR(node.st_mode));
  EXPECT_EQ(major(node.st_rdev), 195u);
  EXPECT_EQ(minor(node.st_rdev), 1u);
}

TEST_F(DriverRootTest, IsReplacedByTheNextAndNeverReplacesAnythingElse) {
  ASSERT_TRUE(lay_out());
  ASSERT_TRUE(lay_out());
  fs::remove(directory_ / ".aliquot-driver-root");
  const auto refused = lay_out();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it holds other files"), std::string::npos);
  EXPECT_TRUE(fs::exists(directory_ / "usr/bin/nvidia-smi"));
}

TEST_F(DriverRootTest, TellsItsMachineToItsOwnSmiOnly) {
  ASSERT_TRUE(lay_out());
  const auto root = machine_of_root(directory_ / "usr/bin/nvidia-smi");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->name, "test");
  EXPECT_EQ(root->libnvidia_ml, directory_ / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
  EXPECT_FALSE(machine_of_root(directory_ / "usr/bin/aliquot"));
  EXPECT_FALSE(machine_of_root("/usr/bin/nvidia-smi"));
}

}  // namespace
}  // namespace aliquot::simdriver
