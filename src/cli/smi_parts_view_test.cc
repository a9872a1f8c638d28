#include "cli/smi_parts_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/smi_parts_command.h"

namespace aliquot::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

inventory::NvmlMig cut() {
  inventory::NvmlMig mig;
  mig.on = true;
  mig.profiles = {{.name = "MIG 3g.40gb",
                   .id = 9,
                   .free = 1,
                   .total = 2,
                   .memory_mib = 40192,
                   .multiprocessors = 42,
                   .copy_engines = 3,
                   .decoders = 2}};
  mig.instances = {{1, std::nullopt, "MIG 3g.40gb", 9, 4, 4}};
  mig.compute_instances = {{1, 0, "MIG 1c.3g.40gb", 0, 0, 1}};
  return mig;
}

// Every line of a box is as wide as the first, so its borders line up.
void expect_a_box(const std::string& text) {
  const std::size_t width = text.find('\n');
  for (std::size_t start = 0; start < text.size(); start += width + 1)
    EXPECT_EQ(text.find('\n', start) - start, width) << text;
}

TEST(SmiMigProfiles, ShowWhatCanStillBeMade) {
  const std::string text = mig_profiles({{2, cut()}});
  expect_a_box(text);
  EXPECT_THAT(text, HasSubstr("|   2  MIG 3g.40gb        9     1/2        39.25      No     42"));
}

TEST(SmiMigProfiles, OfAProductWithoutMigAreNone) {
  EXPECT_EQ(mig_profiles({{0, {}}}), "No MIG-supported devices found.\n");
}

TEST(SmiMigInstances, ShowPlaceAndProfile) {
  const std::string text = mig_instances({{0, cut()}});
  expect_a_box(text);
  EXPECT_THAT(text, HasSubstr("MIG 3g.40gb             9        1          4:4"));
}

TEST(SmiMigInstances, AreNotListedWhereMigIsOff) {
  EXPECT_EQ(mig_instances({{0, {}}}), "No MIG-enabled devices found.\n");
  EXPECT_EQ(mig_compute_instances({{0, {}}}), "No MIG-enabled devices found.\n");
}

TEST(SmiMigInstances, SayWhereThereIsNone) {
  inventory::NvmlMig mig;
  mig.on = true;
  EXPECT_EQ(mig_instances({{0, mig}}), "No GPU instances found: Not Found\n");
  EXPECT_EQ(mig_compute_instances({{0, mig}}), "No compute instances found: Not Found\n");
}

TEST(SmiMigComputeInstances, ShowTheirGpuInstance) {
  const std::string text = mig_compute_instances({{0, cut()}});
  expect_a_box(text);
  EXPECT_THAT(text, HasSubstr("|   0      1       MIG 1c.3g.40gb        0         0"));
}

TEST(SmiNvlink, ShowsEachLinksRate) {
  SmiGpu gpu;
  gpu.index = 3;
  gpu.gpu.uuid = "GPU-1";
  gpu.gpu.name = "NVIDIA A100-SXM4-80GB";
  std::vector<inventory::NvmlNvlink> links(3);
  for (unsigned link = 0; link < 3; ++link) links[link].link = link;
  links[0].active = links[2].active = true;
  links[0].mb_per_s = 25000;
  links[2].mb_per_s = 26562;
  EXPECT_EQ(nvlink_status(gpu, links),
            "GPU 3: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n"
            "\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n\t Link 2: 26.562 GB/s\n");
  EXPECT_EQ(nvlink_status(gpu, {}), "");
}

TEST(SmiWords, OfSeveralLettersBehindOneDashAreSpelledOut) {
  std::vector<std::string> words{"nvidia-smi", "smi", "mig", "-lgip", "-i", "0"};
  spell_out_smi_words(words);
  EXPECT_THAT(words,
              ElementsAre("nvidia-smi", "smi", "mig", "--list-gpu-instance-profiles", "-i", "0"));
  std::vector<std::string> others{"aliquot", "run", "--", "smi", "-lgi"};
  spell_out_smi_words(others);
  EXPECT_EQ(others.back(), "-lgi");
}

}  // namespace
}  // namespace aliquot::cli
