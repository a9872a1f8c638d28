#include "inventory/rdma.h"

#include <gmock/gmock.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

// Lays out one device with one port.
class RdmaTest : public testing::Test {
 protected:
  fs::path device(const std::string& name, std::string_view node_type, std::string_view layer) {
    const fs::path at = fs::path("class/infiniband") / name;
    at_.file(at / "node_type", node_type);
    at_.file(at / "node_guid", "b8ce:f603:00aa:0001\n");
    at_.file(at / "ports/1/link_layer", layer);
    at_.file(at / "ports/1/state", "4: ACTIVE\n");
    at_.file(at / "ports/1/rate", "100 Gb/sec (4X EDR)\n");
    return at;
  }
  // Behind a PCI device with a driver bound to it.
  void on_pci(const fs::path& at, const std::string& bus_id, std::string_view driver) {
    const fs::path pci = at_.pci("pci0000:00/" + bus_id, "0x020700", "0x15b3", 1);
    at_.link(pci / "driver", fs::path("bus/pci/drivers") / driver);
    at_.link(at / "device", pci);
  }
  void gid(const fs::path& at, int index, std::string_view type, std::string_view gid) {
    const std::string number = std::to_string(index);
    at_.file(at / "ports/1/gids" / number, gid);
    if (!type.empty()) at_.file(at / "ports/1/gid_attrs/types" / number, type);
  }
  RdmaDevice only() const {
    const auto devices = read_rdma(at_.sys());
    EXPECT_EQ(devices.size(), 1);
    return devices.empty() ? RdmaDevice{} : devices.front();
  }

  SysfsFixture at_;
};

TEST_F(RdmaTest, InfinibandWithItsPortAndPlace) {
  on_pci(device("mlx5_0", "1: CA\n", "InfiniBand\n"), "0000:0c:00.0", "mlx5_core");
  const RdmaDevice nic = only();
  EXPECT_EQ(nic.kind, RdmaKind::kInfiniband);
  EXPECT_EQ(nic.pci, "0000:0c:00.0");
  EXPECT_EQ(nic.driver, "mlx5_core");
  EXPECT_EQ(nic.numa, 1);
  EXPECT_FALSE(nic.software);
  ASSERT_EQ(nic.ports.size(), 1);
  EXPECT_TRUE(nic.ports[0].active);
  EXPECT_EQ(nic.ports[0].rate_mb_s, 12500);
}

TEST_F(RdmaTest, RoceV2IsToldByItsGidsAndNamesTheOneForIpv4) {
  const auto at = device("mlx5_1", "1: CA\n", "Ethernet\n");
  on_pci(at, "0000:0d:00.0", "mlx5_core");
  gid(at, 0, "IB/RoCE v1\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  gid(at, 1, "RoCE v2\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  gid(at, 2, "IB/RoCE v1\n", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  gid(at, 10, "RoCE v2\n", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  gid(at, 11, "", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  at_.file(at / "ports/1/gid_attrs/ndevs/0", "eth2\n");
  const RdmaDevice nic = only();
  EXPECT_EQ(nic.kind, RdmaKind::kRoceV2);
  EXPECT_EQ(nic.ports[0].ipv4_gid, 10);
  EXPECT_EQ(nic.ports[0].net_device, "eth2");
}

TEST_F(RdmaTest, RoceWithoutV2GidsIsV1) {
  const auto at = device("mlx4_0", "1: CA\n", "Ethernet\n");
  on_pci(at, "0000:0e:00.0", "mlx4_core");
  gid(at, 0, "IB/RoCE v1\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  EXPECT_EQ(only().kind, RdmaKind::kRoceV1);
  EXPECT_EQ(only().ports[0].ipv4_gid, std::nullopt);
}

TEST_F(RdmaTest, OneDriverServesTwoProtocols) {
  on_pci(device("irdma0", "4: RNIC\n", "Ethernet\n"), "0000:0f:00.0", "irdma");
  EXPECT_EQ(only().kind, RdmaKind::kIwarp);
}

TEST_F(RdmaTest, ErdmaIsNamedUnlessItSpeaksRoce) {
  const auto at = device("erdma_0", "4: RNIC\n", "Ethernet\n");
  on_pci(at, "0000:10:00.0", "erdma");
  EXPECT_EQ(only().kind, RdmaKind::kErdma);
  at_.file(at / "node_type", "1: CA\n");
  gid(at, 0, "RoCE v2\n", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  EXPECT_EQ(only().kind, RdmaKind::kRoceV2);
}

TEST_F(RdmaTest, EfaHasItsOwnKind) {
  on_pci(device("rdmap16s27", "7: <unspecified>\n", "Ethernet\n"), "0000:11:00.0", "efa");
  EXPECT_EQ(only().kind, RdmaKind::kEfa);
}

TEST_F(RdmaTest, RxeIsRoceInSoftware) {
  const auto at = device("rxe_eth0", "1: CA\n", "Ethernet\n");
  at_.file(at / "parent", "eth0\n");
  gid(at, 0, "RoCE v2\n", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  const RdmaDevice nic = only();
  EXPECT_EQ(nic.kind, RdmaKind::kRoceV2);
  EXPECT_TRUE(nic.software);
  EXPECT_EQ(nic.pci, "");
}

TEST_F(RdmaTest, AHardwareDeviceWithASoftwareSoundingNameIsHardware) {
  on_pci(device("rxe_real", "1: CA\n", "InfiniBand\n"), "0000:12:00.0", "mlx5_core");
  EXPECT_FALSE(only().software);
}

TEST_F(RdmaTest, ADownPortIsNotActive) {
  const auto at = device("mlx5_0", "1: CA\n", "InfiniBand\n");
  at_.file(at / "ports/1/state", "1: DOWN\n");
  EXPECT_FALSE(only().ports[0].active);
}

TEST_F(RdmaTest, WhatIsHalfThereIsUnknownNotAnError) {
  at_.file("class/infiniband/odd_0/fw_ver", "1.0\n");
  EXPECT_EQ(only().kind, RdmaKind::kUnknown);
}

TEST_F(RdmaTest, GpuDirectByPeermemOrByDmaBuf) {
  EXPECT_EQ(read_gpu_direct(at_.sys(), "6.1.0-18-amd64"), GpuDirect::kNone);
  at_.file("module/nvidia/version", "580.65.06\n");
  EXPECT_EQ(read_gpu_direct(at_.sys(), "6.1.0-18-amd64"), GpuDirect::kDmaBuf);
  EXPECT_EQ(read_gpu_direct(at_.sys(), "5.12.3"), GpuDirect::kDmaBuf);
  EXPECT_EQ(read_gpu_direct(at_.sys(), "5.11.22"), GpuDirect::kNone);
  EXPECT_EQ(read_gpu_direct(at_.sys(), "4.18.0-477.el8"), GpuDirect::kNone);
  at_.file("module/nvidia_peermem/version", "580.65.06\n");
  EXPECT_EQ(read_gpu_direct(at_.sys(), "4.18.0-477.el8"), GpuDirect::kPeermem);
}

}  // namespace
}  // namespace aliquot::inventory
