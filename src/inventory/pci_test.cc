#include "inventory/pci.h"

#include <gmock/gmock.h>

#include "inventory/sysfs_fixture.h"

namespace aliquot::inventory {
namespace {

using model::LinkKind;

constexpr std::string_view kGpu = "0x030200", kNic = "0x020700", kNvme = "0x010802";
constexpr std::string_view kNvidia = "0x10de", kMellanox = "0x15b3";

class PciTest : public testing::Test {
 protected:
  PciDevice find(std::string_view bus_id) const {
    for (const PciDevice& device : read_pci(at_.sys()))
      if (device.bus_id == bus_id) return device;
    ADD_FAILURE() << "no device " << bus_id;
    return {};
  }
  SysfsFixture at_;
};

TEST_F(PciTest, OnlyWhatMattersToAGpuIsListed) {
  at_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", kGpu, kNvidia, 0);
  at_.pci("pci0000:00/0000:00:02.0/0000:02:00.0", kNic, kMellanox, 0);
  at_.pci("pci0000:00/0000:00:03.0/0000:03:00.0", kNvme, "0x144d", 0);
  at_.pci("pci0000:00/0000:00:04.0/0000:04:00.0", "0x068000", kNvidia, 0);
  at_.pci("pci0000:00/0000:00:05.0/0000:05:00.0", "0x030000", "0x1a03", 0);  // the board's VGA
  at_.pci("pci0000:00/0000:00:1f.0", "0x060100", "0x8086", 0);
  const auto devices = read_pci(at_.sys());
  ASSERT_EQ(devices.size(), 4);
  EXPECT_EQ(devices[0].kind, PciKind::kGpu);
  EXPECT_EQ(devices[1].kind, PciKind::kNic);
  EXPECT_EQ(devices[2].kind, PciKind::kNvme);
  EXPECT_EQ(devices[3].kind, PciKind::kNvswitch);
  EXPECT_EQ(devices[0].vendor, 0x10de);
  EXPECT_EQ(devices[0].device, 0x20b2);
}

// One switch with three ports below root port 01, a second switch behind its port 0a.
TEST_F(PciTest, NearnessFollowsTheBridges) {
  const std::string switch1 = "pci0000:00/0000:00:01.0/0000:01:00.0/";
  at_.pci(switch1 + "0000:02:08.0/0000:03:00.0", kGpu, kNvidia, 0);
  at_.pci(switch1 + "0000:02:09.0/0000:04:00.0", kNic, kMellanox, 0);
  at_.pci(switch1 + "0000:02:0a.0/0000:05:00.0/0000:06:01.0/0000:07:00.0", kNic, kMellanox, 0);
  at_.pci("pci0000:00/0000:00:02.0/0000:08:00.0", kNic, kMellanox, 0);
  at_.pci("pci0000:40/0000:40:01.0/0000:41:00.0", kNic, kMellanox, 0);
  at_.pci("pci0000:80/0000:80:01.0/0000:81:00.0", kNic, kMellanox, 1);
  const PciDevice gpu = find("0000:03:00.0");
  EXPECT_EQ(path_between(gpu, gpu), LinkKind::kSelf);
  EXPECT_EQ(path_between(gpu, find("0000:04:00.0")), LinkKind::kPix);
  EXPECT_EQ(path_between(gpu, find("0000:07:00.0")), LinkKind::kPxb);
  EXPECT_EQ(path_between(gpu, find("0000:08:00.0")), LinkKind::kPhb);
  EXPECT_EQ(path_between(gpu, find("0000:41:00.0")), LinkKind::kNode);
  EXPECT_EQ(path_between(gpu, find("0000:81:00.0")), LinkKind::kSys);
  EXPECT_EQ(path_between(find("0000:81:00.0"), gpu), LinkKind::kSys);
}

TEST_F(PciTest, TheLinkIsAsGoodAsItsWeakerEnd) {
  const auto gpu = at_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", kGpu, kNvidia, 0);
  at_.file(gpu / "current_link_speed", "2.5 GT/s PCIe\n");
  at_.file(gpu / "current_link_width", "16\n");
  at_.file(gpu / "max_link_speed", "32.0 GT/s PCIe\n");
  at_.file(gpu / "max_link_width", "16\n");
  at_.file(gpu.parent_path() / "max_link_speed", "16.0 GT/s PCIe\n");
  at_.file(gpu.parent_path() / "max_link_width", "8\n");
  const PciDevice device = find("0000:01:00.0");
  EXPECT_EQ(device.link, (PciLink{2.5, 16}));
  EXPECT_EQ(device.most, (PciLink{16, 8}));
}

TEST_F(PciTest, Bar1IsTheLargestMemoryWindow) {
  const auto gpu = at_.pci("pci0000:00/0000:01:00.0", kGpu, kNvidia, 0);
  at_.file(gpu / "resource",
           "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
           "0x0000002000000000 0x0000002fffffffff 0x000000000014220c\n"
           "0x0000000000006000 0x000000000000607f 0x0000000000040101\n"
           "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  EXPECT_EQ(find("0000:01:00.0").bar1_bytes, 64ull << 30);
}

TEST_F(PciTest, PayloadIsReadFromTheExpressCapability) {
  const auto gpu = at_.pci("pci0000:00/0000:01:00.0", kGpu, kNvidia, 0);
  std::string config(256, '\0');
  config[0x34] = 0x60;  // power management, which leads to PCI Express
  config[0x60] = 0x01;
  config[0x61] = 0x78;
  config[0x78] = 0x10;
  config[0x7c] = 2;       // could: 512
  config[0x80] = 1 << 5;  // does: 256
  at_.file(gpu / "config", config);
  EXPECT_EQ(find("0000:01:00.0").payload_can_bytes, 512);
  EXPECT_EQ(find("0000:01:00.0").payload_bytes, 256);
}

TEST_F(PciTest, WithoutRootThePayloadIsNotTold) {
  const auto gpu = at_.pci("pci0000:00/0000:01:00.0", kGpu, kNvidia, 0);
  at_.file(gpu / "config", std::string(64, '\0'));
  EXPECT_EQ(find("0000:01:00.0").payload_bytes, std::nullopt);
}

TEST_F(PciTest, ACapabilityListThatRunsInACircleEnds) {
  const auto gpu = at_.pci("pci0000:00/0000:01:00.0", kGpu, kNvidia, 0);
  std::string config(256, '\0');
  config[0x34] = 0x60;
  config[0x60] = 0x01;
  config[0x61] = 0x60;
  at_.file(gpu / "config", config);
  EXPECT_EQ(find("0000:01:00.0").payload_bytes, std::nullopt);
}

TEST_F(PciTest, AVirtualMachineHidesItsTopology) {
  at_.pci("pci0000:00/0000:00:05.0", kGpu, kNvidia, -1);
  at_.pci("pci0000:00/0000:00:06.0", kGpu, kNvidia, -1);
  EXPECT_TRUE(hides_topology(read_pci(at_.sys())));
  EXPECT_EQ(find("0000:00:05.0").numa, std::nullopt);
  at_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", kNic, kMellanox, 0);
  EXPECT_FALSE(hides_topology(read_pci(at_.sys())));
}

TEST_F(PciTest, AnEmptyMachineHasNone) { EXPECT_TRUE(read_pci(at_.sys()).empty()); }

}  // namespace
}  // namespace aliquot::inventory
