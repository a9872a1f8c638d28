#include "inventory/job_hints.h"

#include <gmock/gmock.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::inventory {
namespace {

using model::LinkKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Four GPUs on two sockets; GPU 0 and 1 share a switch with mlx5_0; GPU 2 has mlx5_1 behind a
// second switch; GPU 3 is by itself, mlx5_1 through the CPU; rxe0 is software.
Inventory machine() {
  Inventory all;
  all.host.numa = {{0, "0-3", 0, {}}, {1, "32-35", 0, {}}};
  const char* nearest[] = {"mlx5_0", "mlx5_0", "mlx5_1", "mlx5_1"};
  std::vector<model::Device> gpus(4), nics(3);
  for (unsigned i = 0; i < 4; ++i) {
    InventoryGpu gpu;
    gpu.identity.uuid = "GPU-" + std::to_string(i);
    gpu.identity.bus_id = "00000000:" + std::to_string(10 + i) + ":00.0";
    gpu.identity.numa = i < 2 ? 0 : 1;
    gpu.nearest_nic = nearest[i];
    all.gpus.push_back(gpu);
  }
  for (const char* name : {"mlx5_0", "mlx5_1", "rxe0"}) {
    RdmaDevice nic;
    nic.name = name;
    nic.kind = RdmaKind::kInfiniband;
    nic.software = name[0] == 'r';
    nic.pci = nic.software ? "" : name == std::string("mlx5_0") ? "0000:20:00.0" : "0000:21:00.0";
    nic.numa = name == std::string("mlx5_0") ? 0 : 1;
    nic.ports = {{1, true, false, 25'000, "", {}}};
    all.nics.push_back(nic);
  }
  all.topology = model::NodeTopology(gpus, nics);
  for (std::size_t a = 0; a < 7; ++a)
    for (std::size_t b = 0; b < a; ++b)
      all.topology.set_link(a, b, model::path_link(LinkKind::kSys, 4));
  all.topology.set_link(0, 1, model::nvlink(4));
  all.topology.set_link(0, 4, model::path_link(LinkKind::kPix, 4));
  all.topology.set_link(1, 4, model::path_link(LinkKind::kPix, 4));
  all.topology.set_link(2, 5, model::path_link(LinkKind::kPxb, 4));
  all.topology.set_link(3, 5, model::path_link(LinkKind::kPhb, 4));
  return all;
}

TEST(JobHints, TheNearestHcaOfEachGpuIsChosenOnce) {
  const Inventory all = machine();
  EXPECT_EQ(nccl_hca_list(near_hcas(all, {"GPU-0", "GPU-1"})), "=mlx5_0:1");
  EXPECT_EQ(nccl_hca_list(near_hcas(all, {"GPU-2", "GPU-0"})), "=mlx5_1:1,mlx5_0:1");
  EXPECT_EQ(nccl_hca_list(near_hcas(all, {"GPU-9"})), "");
}

TEST(JobHints, ADownPortASoftwareDeviceAndAFarSocketAreNotChosen) {
  Inventory all = machine();
  all.nics[0].ports[0].active = false;
  EXPECT_THAT(near_hcas(all, {"GPU-0"}), IsEmpty());
  all.gpus[2].nearest_nic = "rxe0";
  EXPECT_THAT(near_hcas(all, {"GPU-2"}), IsEmpty());
  all.gpus[3].nearest_nic = "mlx5_1";
  all.topology.set_link(3, 5, model::path_link(LinkKind::kSys, 4));
  EXPECT_THAT(near_hcas(all, {"GPU-3"}), IsEmpty());
}

TEST(JobHints, TheTopologyPutsASwitchAboveWhatSharesOne) {
  const Inventory all = machine();
  const std::vector<std::string> uuids{"GPU-0", "GPU-1", "GPU-3"};
  EXPECT_EQ(nccl_topology(all, uuids, near_hcas(all, uuids)),
            "<system version=\"1\">\n"
            "  <cpu numaid=\"0\" affinity=\"0000000f\">\n"
            "    <pci busid=\"ffff:ff:01.0\" class=\"0x060400\">\n"
            "      <pci busid=\"0000:10:00.0\" class=\"0x030200\"/>\n"
            "      <pci busid=\"0000:11:00.0\" class=\"0x030200\"/>\n"
            "      <pci busid=\"0000:20:00.0\" class=\"0x020700\"/>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "  <cpu numaid=\"1\" affinity=\"0000000f,00000000\">\n"
            "    <pci busid=\"0000:13:00.0\" class=\"0x030200\"/>\n"
            "    <pci busid=\"0000:21:00.0\" class=\"0x020700\"/>\n"
            "  </cpu>\n"
            "</system>\n");
}

TEST(JobHints, SeveralSwitchesNest) {
  Inventory all = machine();
  all.topology.set_link(2, 5, model::path_link(LinkKind::kPix, 4));
  all.topology.set_link(3, 5, model::path_link(LinkKind::kPxb, 4));
  const std::vector<std::string> uuids{"GPU-2", "GPU-3"};
  EXPECT_THAT(nccl_topology(all, uuids, near_hcas(all, uuids)),
              HasSubstr("    <pci busid=\"ffff:ff:01.0\" class=\"0x060400\">\n"
                        "      <pci busid=\"ffff:ff:02.0\" class=\"0x060400\">\n"
                        "        <pci busid=\"0000:12:00.0\" class=\"0x030200\"/>\n"
                        "        <pci busid=\"0000:21:00.0\" class=\"0x020700\"/>\n"
                        "      </pci>\n"
                        "      <pci busid=\"0000:13:00.0\" class=\"0x030200\"/>\n"
                        "    </pci>\n"));
}

TEST(JobHints, OnlyLeasedGpusAndChosenHcasAreTold) {
  const Inventory all = machine();
  const std::string text = nccl_topology(all, {"GPU-2"}, {});
  EXPECT_THAT(text, HasSubstr("0000:12:00.0"));
  EXPECT_THAT(text, Not(HasSubstr("0000:10:00.0")));
  EXPECT_THAT(text, Not(HasSubstr("0x0207")));
  EXPECT_EQ(nccl_topology(Inventory{}, {"GPU-0"}, {}), "");
}

TEST(JobHints, OnlyTheChosenHcasVerbsNodesAreGiven) {
  SysfsFixture sys;
  sys.file("class/infiniband_verbs/uverbs0/ibdev", "mlx5_1\n");
  sys.file("class/infiniband_verbs/uverbs1/ibdev", "mlx5_0\n");
  sys.file("class/infiniband_verbs/abi_version", "6\n");
  const Inventory all = machine();
  EXPECT_THAT(verbs_nodes(Sysfs(sys.path("")), near_hcas(all, {"GPU-0"})),
              ElementsAre("/dev/infiniband/uverbs1"));
  EXPECT_THAT(verbs_nodes(Sysfs(sys.path("")), {}), IsEmpty());
}

TEST(JobHints, CompatLibrariesAreForAMajorVersionAheadOnDataCentreGpusOnly) {
  const auto advice = [](const char* driver, const char* image, bool data_center = true) {
    return compat_advice(cuda_version_of(driver), cuda_version_of(image), data_center);
  };
  EXPECT_FALSE(advice("12.4", "11.8").use);
  EXPECT_THAT(advice("12.4", "11.8").reason, HasSubstr("CUDA 11.8 is not newer"));
  EXPECT_FALSE(advice("12.2", "12.8").use);
  EXPECT_THAT(advice("12.2", "12.8").reason, HasSubstr("one major version"));
  EXPECT_TRUE(advice("12.2", "13.0").use);
  EXPECT_FALSE(advice("12.2", "13.0", false).use);
  EXPECT_FALSE(advice("12.2", "13.0", false).possible);
  EXPECT_TRUE(advice("10.1", "10.2").use) << "before 11 a minor version counts";
  EXPECT_FALSE(advice("12.2", "latest").use);
  EXPECT_TRUE(advice("12.2", "latest").possible);
}

TEST(JobHints, VersionsAndProductsAreReadAsTheyAreWritten) {
  EXPECT_EQ(cuda_version_of("12.4.1"), 12040);
  EXPECT_EQ(cuda_version_of("13.0"), 13000);
  for (const char* wrong : {"", "12", "12.", "x.1", "0.1", "-1.2", "999.1"})
    EXPECT_EQ(cuda_version_of(wrong), 0) << wrong;
  EXPECT_TRUE(is_data_center("NVIDIA A100-SXM4-80GB"));
  EXPECT_FALSE(is_data_center("NVIDIA GeForce RTX 4090"));
}

}  // namespace
}  // namespace aliquot::inventory
