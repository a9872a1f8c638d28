#include "inventory/document.h"

#include <gmock/gmock.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::inventory {
namespace {

using model::LinkKind;
using testing::HasSubstr;

// Two GPUs behind one switch each; a NIC and a drive beside the second; a NIC in software.
class DocumentTest : public testing::Test {
 protected:
  DocumentTest() {
    for (unsigned i = 0; i < 2; ++i) {
      NvmlGpu gpu;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.name = "NVIDIA A100-SXM4-80GB";
      gpu.bus_id = i == 0 ? "00000000:03:00.0" : "00000000:4B:00.0";
      gpu.numa = static_cast<int>(i);
      gpu.virtualization = "none";
      nvml_.gpu_answers.push_back(gpu);
      NvmlState state;
      state.memory.total_bytes = 80ull << 30;
      state.bar1_bytes = 128ull << 30;
      state.mig = i == 1;
      nvml_.state_answers.push_back(state);
      nvml_.path_answers.emplace_back(2, LinkKind::kSys);
    }
    sys_.pci("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:03:00.0", "0x030200", "0x10de",
             0);
    const std::string second = "pci0000:40/0000:40:01.0/0000:41:00.0/";
    sys_.pci(second + "0000:42:08.0/0000:4b:00.0", "0x030200", "0x10de", 1);
    const auto nic = sys_.pci(second + "0000:42:09.0/0000:4c:00.0", "0x020700", "0x15b3", 1);
    sys_.pci(second + "0000:42:0a.0/0000:4d:00.0", "0x010802", "0x144d", 1);
    sys_.link(nic / "driver", "bus/pci/drivers/mlx5_core");
    rdma("mlx5_0", "InfiniBand\n");
    sys_.link("class/infiniband/mlx5_0/device", nic);
    rdma("rxe0", "Ethernet\n");
    sys_.file("class/infiniband/rxe0/parent", "eth0\n");
    proc_.file("sys/kernel/osrelease", "6.1.0\n");
    sys_.file("module/nvidia/version", "580.65.06\n");
    sys_.file("devices/system/node/node0/cpulist", "0-23\n");
  }

  void rdma(const std::string& name, std::string_view layer) {
    const std::filesystem::path at = std::filesystem::path("class/infiniband") / name;
    sys_.file(at / "node_type", "1: CA\n");
    sys_.file(at / "ports/1/link_layer", layer);
    sys_.file(at / "ports/1/state", "4: ACTIVE\n");
    sys_.file(at / "ports/1/rate", "200 Gb/sec (4X HDR)\n");
  }

  Inventory taken() {
    auto all =
        collect(nvml_, {sys_.path(""), proc_.path(""), sys_.path("mps")}, nvidia_, 1'700'000'000);
    EXPECT_TRUE(all) << all.error().message;
    return all ? *all : Inventory{};
  }
  std::string fault(const format::Json& json) {
    const auto read = parse_inventory(json.dump(), "inventory.json");
    return read ? "" : read.error().message;
  }

  Driver nvidia_{"nvidia", "", "", ""};
  FakeNvml nvml_;
  SysfsFixture sys_;
  SysfsFixture proc_;
};

TEST_F(DocumentTest, JoinsWhatTheDriverSaysWithWhereThingsLie) {
  const Inventory all = taken();
  ASSERT_EQ(all.gpus.size(), 2);
  EXPECT_EQ(all.gpus[0].memory_bytes, 80ull << 30);
  EXPECT_EQ(all.gpus[1].bar1_bytes, 128ull << 30);
  EXPECT_TRUE(all.gpus[1].mig);
  EXPECT_EQ(all.gpu_direct, GpuDirect::kDmaBuf);
  EXPECT_EQ(all.host.kernel, "6.1.0");
  EXPECT_FALSE(all.topology_hidden);
  EXPECT_EQ(all.taken_unix_s, 1'700'000'000);
}

TEST_F(DocumentTest, TheNearestNicAndDriveOfAGpuAreNamedSoftwareNever) {
  const Inventory all = taken();
  EXPECT_EQ(all.gpus[1].nearest_nic, "mlx5_0");
  EXPECT_EQ(all.gpus[1].nearest_nvme, "0000:4d:00.0");
  EXPECT_EQ(all.gpus[0].nearest_nic, "mlx5_0") << "the only one, if far";
}

TEST_F(DocumentTest, TheGraphHoldsNicsBehindTheGpus) {
  const model::NodeTopology node = taken().topology;
  ASSERT_EQ(node.gpu_count(), 2);
  ASSERT_EQ(node.nic_count(), 2);
  EXPECT_EQ(node.nics()[0].description, "mlx5_0");
  EXPECT_EQ(node.nic_link(1, 0).kind, LinkKind::kPix);
  EXPECT_EQ(node.nic_link(0, 0).kind, LinkKind::kSys);
  EXPECT_EQ(node.link(0, 1).kind, LinkKind::kSys);
}

TEST_F(DocumentTest, AGpuThatSysfsDoesNotShowHasNoNeighbours) {
  nvml_.gpu_answers[1].bus_id = "00000000:FF:00.0";
  EXPECT_EQ(taken().gpus[1].nearest_nic, "");
  EXPECT_EQ(taken().gpus[1].nearest_nvme, "");
}

TEST_F(DocumentTest, WhatIsPrintedReadsBack) {
  const Inventory all = taken();
  const auto back = parse_inventory(to_json(all).dump(2), "inventory.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, all);
}

TEST_F(DocumentTest, AnEmptyMachineReadsBackToo) {
  nvml_.gpu_answers.clear();
  const Driver simulated{"sim:lab", "/nonexistent", "", ""};
  const auto all = collect(nvml_, roots_of(simulated), simulated, 1);
  ASSERT_TRUE(all);
  const auto back = parse_inventory(to_json(*all).dump(), "inventory.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, *all);
}

TEST_F(DocumentTest, ADriverThatFailsIsAnErrorNotAnEmptyMachine) {
  nvml_.fault = Error{Errc::kUnavailable, "nvmlDeviceGetCount_v2: Driver Not Loaded"};
  const auto all = collect(nvml_, {}, nvidia_, 1);
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("Driver Not Loaded"));
}

TEST_F(DocumentTest, AnotherVersionIsRefusedBeforeAnythingElse) {
  format::Json json = to_json(taken());
  json.set("version", 2).set("new_key", true);
  EXPECT_EQ(fault(json), "inventory.json: not an inventory of version 1");
  EXPECT_EQ(fault(format::Json::array()), "inventory.json: not an inventory of version 1");
}

TEST_F(DocumentTest, FaultsNameThePlace) {
  const format::Json sound = to_json(taken());
  EXPECT_EQ(fault(sound), "");
  EXPECT_EQ(fault(format::Json(sound).set("extra", 1)), "inventory.json: extra: unknown key");
  EXPECT_EQ(fault(format::Json(sound).set("mps", "walks")),
            "inventory.json: mps: not valid: walks");
  EXPECT_EQ(fault(format::Json(sound).set("links", format::Json::array())),
            "inventory.json: links: not every pair is there");
  format::Json links = *sound.find("links");
  format::Json twice = links;
  twice.append(links.if_array()->front());
  EXPECT_THAT(fault(format::Json(sound).set("links", twice)), HasSubstr("told twice: 0 1"));
}

}  // namespace
}  // namespace aliquot::inventory
