#include "simdriver/presets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "common/files.h"
#include "simdriver/machine_json.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

MachineSpec machine(const std::string& node, const std::string& name = "lab") {
  auto made = make_machine({.node = node, .name = name, .cuda = ""}, *simulator_directory());
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? *made : MachineSpec{};
}

std::string fault(const MachineRequest& request) {
  const auto made = make_machine(request, *simulator_directory());
  EXPECT_FALSE(made);
  return made ? "" : made.error().message;
}

TEST(Presets, EveryOneLoadsAndSurvivesBeingWritten) {
  const auto names = preset_names(*simulator_directory());
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 10u);
  for (const std::string& name : *names) {
    const MachineSpec made = machine(name);
    const auto again = machine_from_json(to_json(made), "again", [](auto) -> Result<GpuModel> {
      return Error{Errc::kNotFound, "a complete machine needs no look-up"};
    });
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, made) << name;
  }
}

TEST(Presets, A100NodeHasEightGpusOnASwitch) {
  const MachineSpec node = machine("a100x8");
  ASSERT_EQ(node.gpus.size(), 8u);
  EXPECT_EQ(node.model_of(7).product, "NVIDIA A100-SXM4-80GB");
  EXPECT_TRUE(node.nvswitch);
  EXPECT_EQ(node.nvlinks[0][7], 12u);
  EXPECT_EQ(node.pcie[0][1], PciePath::kPxb);
  EXPECT_EQ(node.pcie[0][7], PciePath::kSys);
  EXPECT_EQ(node.driver.cuda, 13000);
}

TEST(Presets, Dgx1IsAHybridCubeMeshOfSixLinksAGpu) {
  const MachineSpec node = machine("dgx1-v100");
  for (const auto& row : node.nvlinks) {
    unsigned links = 0;
    for (const unsigned n : row) links += n;
    EXPECT_EQ(links, 6u);
  }
  EXPECT_EQ(node.nvlinks[0][4], 2u);
  EXPECT_EQ(node.nvlinks[0][5], 0u);
}

TEST(Presets, TakesAnyCount) {
  EXPECT_EQ(machine("h20x4").gpus.size(), 4u);
  EXPECT_EQ(machine("dgx1-v100x2").gpus.size(), 2u);
  EXPECT_EQ(machine("h100").gpus.size(), 8u);
  const MachineSpec large = machine("h100x16");
  ASSERT_EQ(large.gpus.size(), 16u);
  EXPECT_EQ(large.nvlinks[3][15], 18u);  // the switch reaches them all
  EXPECT_EQ(machine("rtx4090x9").nvlinks[0][8], 0u);
  EXPECT_EQ(fault({.node = "a100x65", .name = "", .cuda = ""}), "node a100x65: at most 64 GPUs");
}

TEST(Presets, GpusAreTheSameOnEveryStartAndOthersUnderAnotherName) {
  std::set<Uuid> uuids;
  for (const GpuSpec& gpu : machine("h100x16").gpus) uuids.insert(gpu.uuid);
  EXPECT_EQ(uuids.size(), 16u);
  EXPECT_EQ(machine("a100x8"), machine("a100x8"));
  EXPECT_NE(machine("a100x8", "a").gpus[0].uuid, machine("a100x8", "b").gpus[0].uuid);
  EXPECT_EQ(gpu_uuid_text(machine("a100x8").gpus[0].uuid).size(), 40u);
}

TEST(Presets, PretendsOlderDriversAndRefusesUnknownOnes) {
  const auto old =
      make_machine({.node = "t4x1", .name = "", .cuda = "11.8"}, *simulator_directory());
  ASSERT_TRUE(old);
  EXPECT_EQ(old->driver, (DriverVersion{11080, "520.61.05", "11.520.61.05"}));
  EXPECT_EQ(fault({.node = "t4x1", .name = "", .cuda = "10.0"}),
            "driver 10.0: cannot be simulated; there are 11.8, 12.4, 12.9, 13.0");
}

TEST(Presets, SaysWhichPresetsThereAre) {
  const std::string message = fault({.node = "k80x2", .name = "", .cuda = ""});
  EXPECT_NE(message.find("node k80x2: no such preset; there are a100x8, "), std::string::npos);
}

TEST(Presets, ReadsAFileThatNamesOurModels) {
  std::string path = (fs::temp_directory_path() / "aliquot-node-XXXXXX").string();
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  close(fd);
  const fs::path file = path + ".json";
  fs::rename(path, file);
  ASSERT_TRUE(write_file_atomically(file, R"({
    "gpus": [{"model": "t4", "pci": "0000:01:00.0"}, {"model": "l40s", "pci": "0000:02:00.0"}],
    "nvlinks": ["X 0", "0 X"], "pcie": ["X PHB", "PHB X"]})"));
  const MachineSpec mixed = machine(file.string());
  ASSERT_EQ(mixed.gpus.size(), 2u);
  EXPECT_EQ(mixed.model_of(0).product, "Tesla T4");
  EXPECT_EQ(mixed.model_of(1).product, "NVIDIA L40S");
  EXPECT_EQ(mixed.gpus[1].numa, -1);

  ASSERT_TRUE(write_file_atomically(file, R"({"gpus": [{"model": "../t4"}]})"));
  EXPECT_FALSE(
      make_machine({.node = file.string(), .name = "", .cuda = ""}, *simulator_directory()));
  fs::remove(file);
}

}  // namespace
}  // namespace aliquot::simdriver
