#include "simdriver/presets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "common/files.h"
#include "format/json.h"
#include "simdriver/machine_json.h"
#include "support/shared_data.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;
using format::Json;

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

// The list under the GPU of that PCI device; nullptr: not published.
const Json* published_profiles(const Json& published, std::uint32_t device) {
  for (const Json::Member& gpu : *published.find("gpus")->if_object())
    for (const Json& id : *gpu.value.find("device_ids")->if_array())
      if (std::stoul(*id.if_string(), nullptr, 16) == device) return gpu.value.find("profiles");
  return nullptr;
}

// What is not published is null.
void compare_with_published(const MigProfile& ours, const Json& profile) {
  const std::pair<const char*, unsigned> numbers[] = {{"profile_id", ours.id},
                                                      {"compute_slices", ours.compute_slices},
                                                      {"size_slots", ours.memory_slots},
                                                      {"max_instances", ours.max_instances},
                                                      {"sm", ours.sms},
                                                      {"copy_engines", ours.copy_engines},
                                                      {"nvdec", ours.decoders},
                                                      {"nvjpg", ours.jpeg_engines},
                                                      {"ofa", ours.ofa_engines}};
  for (const auto& [key, value] : numbers) {
    const Json& told = *profile.find(key);
    if (told.is_null()) continue;
    EXPECT_EQ(*told.if_int(), value) << key;
  }
  Json starts = Json::array();
  for (const unsigned start : ours.starts) starts.append(start);
  EXPECT_EQ(*profile.find("starts"), starts);
  const Json& gib = *profile.find("memory_gib");
  if (gib.is_null()) return;
  const double told =
      gib.if_double() != nullptr ? *gib.if_double() : static_cast<double>(*gib.if_int());
  EXPECT_NEAR(static_cast<double>(ours.memory_mib), told * 1024, 1);  // told to two places
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

// NVIDIA's tables, collected apart from our models: each figure that they publish.
TEST(Presets, HaveTheMigProfilesThatNvidiaPublishes) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data here (ALIQUOT_SHARED_DATA)";
  const auto text = read_file(*data / "mig_profiles.json");
  ASSERT_TRUE(text) << text.error().message;
  const auto published = format::parse_json(*text, "mig_profiles.json");
  ASSERT_TRUE(published) << published.error().message;
  std::set<std::string> compared;
  for (const char* node : {"a100x1", "h100x1", "h200x1", "b200x1"}) {
    const GpuModel model = machine(node).models[0];
    const Json* profiles = published_profiles(*published, model.pci_device_id);
    ASSERT_NE(profiles, nullptr) << node;
    for (const Json& profile : *profiles->if_array()) {
      const auto ours =
          std::ranges::find(model.mig, *profile.find("name")->if_string(), &MigProfile::name);
      ASSERT_NE(ours, model.mig.end()) << node;
      SCOPED_TRACE(std::string(node) + " " + ours->name);
      compare_with_published(*ours, profile);
      compared.insert(node + ours->name);
    }
    EXPECT_EQ(profiles->if_array()->size(), model.mig.size());
  }
  EXPECT_EQ(compared.size(), 4 * 7u);
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
