#include "node/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "common/files.h"
#include "format/json.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

struct InjectionTest : testing::Test {
  InjectionTest() {
    std::string name = testing::TempDir() + "/injection-XXXXXX";
    root = mkdtemp(name.data());
    EXPECT_TRUE(write_file_atomically(root / "libaliquot.so", "first"));
  }
  ~InjectionTest() override { fs::remove_all(root); }

  NodeFiles files(const inventory::Driver& driver) {
    const auto laid = lay_out_node_files(root / "state", root / "libaliquot.so", driver);
    EXPECT_TRUE(laid) << laid.error().message;
    return laid ? *laid : NodeFiles{};
  }
  static std::string host_of(const ContainerGift& gift, const std::string& container) {
    const auto at = std::ranges::find(gift.mounts, container, &MountedPath::container);
    return at == gift.mounts.end() ? "" : at->host;
  }

  fs::path root;
  inventory::Driver simulated{"sim:m", "/m", "/m/lib/libcuda.so.1", "/m/lib/libnvidia-ml.so.1"};
};

TEST_F(InjectionTest, AContainerOfASimulatedMachineGetsNoDeviceNodes) {
  const ContainerGift gift = injection_of(files(simulated), "/leases/a/tenant", {{"GPU-a", 3}});
  EXPECT_TRUE(gift.devices.empty());
  EXPECT_EQ(host_of(gift, "/run/aliquot/lease"), "/leases/a/tenant");
  EXPECT_EQ(host_of(gift, "/run/aliquot/driver/behind/cuda"), "/m/lib/libcuda.so.1");
  EXPECT_EQ(host_of(gift, "/run/aliquot/driver/socket"), "/m/socket");
  EXPECT_TRUE(std::ranges::all_of(gift.mounts, &MountedPath::read_only));
}

TEST_F(InjectionTest, OfARealDriverOnlyTheAssignedGpusNodesAreShown) {
  const fs::path lib = root / "usr";
  fs::create_directories(lib);
  for (const char* name :
       {"libcuda.so.580.1", "libnvidia-ptxjitcompiler.so.580.1", "libother.so.1"})
    EXPECT_TRUE(write_file_atomically(lib / name, ""));
  const inventory::Driver real{"nvidia", {}, lib / "libcuda.so.580.1", lib / "libnvidia-ml.so.1"};
  const ContainerGift gift = injection_of(files(real), "/l", {{"GPU-c", 2}, {"GPU-d", 5}});
  std::vector<std::string> nodes;
  for (const DeviceNode& node : gift.devices) nodes.push_back(node.container);
  EXPECT_THAT(nodes, testing::UnorderedElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm",
                                                   "/dev/nvidia-uvm-tools", "/dev/nvidia2",
                                                   "/dev/nvidia5"));
  EXPECT_EQ(host_of(gift, "/usr/lib64/libnvidia-ptxjitcompiler.so.1"),
            (lib / "libnvidia-ptxjitcompiler.so.580.1").string());
  EXPECT_EQ(host_of(gift, "/usr/lib64/libother.so.1"), "");
}

TEST_F(InjectionTest, ALibraryInUseIsNeverOverwritten) {
  const fs::path before = files(simulated).libraries;
  EXPECT_TRUE(write_file_atomically(root / "libaliquot.so", "second"));
  const fs::path after = files(simulated).libraries;
  EXPECT_NE(before, after);
  EXPECT_EQ(*read_file(before / "libcuda.so.1"), "first");
  EXPECT_EQ(*read_file(after / "libnvidia-ml.so"), "second");
  EXPECT_EQ(files(simulated).libraries, after);  // the same content is the same directory
}

TEST_F(InjectionTest, TheSpecificationIsOneDeviceOfOurKind) {
  const ContainerGift gift{
      {{"A", "b"}}, {{"/h", "/c", true}}, {{"/dev/null", "/dev/x", "rw"}}, {}, "/hook"};
  const auto json = format::parse_json(cdi_text("0123", gift), "spec");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json->find("kind")->if_string(), kCdiKind);
  const auto& device = json->find("devices")->if_array()->at(0);
  EXPECT_EQ(*device.find("name")->if_string(), "0123");
  EXPECT_EQ(cdi_name("0123"), "aliquot.dev/lease=0123");
  const auto* edits = device.find("containerEdits");
  EXPECT_EQ(edits->find("mounts")->if_array()->at(0).find("options")->dump(),
            R"(["rbind","nosuid","nodev","ro"])");
  EXPECT_EQ(edits->find("env")->dump(), R"(["A=b"])");
  EXPECT_EQ(edits->find("hooks")->dump(),
            R"([{"hookName":"createRuntime","path":"/hook","args":["aliquot-image-check"]}])");
  EXPECT_EQ(*edits->find("deviceNodes")->if_array()->at(0).find("path")->if_string(), "/dev/x");
}

}  // namespace
}  // namespace aliquot::node
