#include "node/exposition_read.h"

#include <gmock/gmock.h>

namespace aliquot::node {
namespace {

// As dcgm-exporter prints it.
constexpr std::string_view kDcgm =
    "# HELP DCGM_FI_PROF_PIPE_TENSOR_ACTIVE Ratio of cycles the tensor pipe is active.\n"
    "# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge\n"
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-0\",modelName=\"A \\\"B\\\"\"} 0.25\n"
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"1\",UUID=\"GPU-1\"} 0.5\n"
    "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-0\"} 1e+06\n"
    "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\"} 40\n"
    "go_goroutines 12\n";

TEST(ExpositionRead, OnlyFamiliesWithThePrefixAreTaken) {
  const auto families = read_exposition(kDcgm, "DCGM_");
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[1].name, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION");
  EXPECT_EQ(families[1].type, MetricType::kUntyped);
  EXPECT_EQ(families[2].type, MetricType::kGauge);
  EXPECT_EQ(families[2].help, "Ratio of cycles the tensor pipe is active.");
  EXPECT_EQ(families[2].samples.at(0).labels.at(2).second, "A \"B\"");
  EXPECT_EQ(families[2].samples.at(1).value, 0.5);
}

TEST(ExpositionRead, WhatWasReadIsWrittenAlike) {
  const std::string text = expose(read_exposition(kDcgm, "DCGM_FI_PROF"), TextFormat::kPrometheus);
  EXPECT_EQ(text, kDcgm.substr(0, kDcgm.find("# TYPE DCGM_FI_DEV_TOTAL")));
}

TEST(ExpositionRead, ALineThatIsNotUnderstoodCostsItselfOnly) {
  const auto families = read_exposition(
      "DCGM_A{x=\"unended} 1\nDCGM_B{x} 1\nDCGM_C nonsense\nDCGM_D{=\"\"} 1\nDCGM_E\n"
      "DCGM_F{x=\"1\",} 2\n{\nDCGM_G{x=\"1\"",
      "DCGM_");
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].name, "DCGM_F");
}

TEST(ExpositionRead, OurOwnFamilyComesBeforeTheirsAndASilentGpusSeriesAreLeftOut) {
  NodeFigures node;
  node.gpus.resize(2);
  node.gpus[0].uuid = "GPU-0";
  node.gpus[0].memory_total_bytes = 1;
  node.gpus[1].uuid = "GPU-1";  // answers no more
  std::vector<Family> families{{"DCGM_FI_DEV_GPU_TEMP", MetricType::kGauge, "", "ours", {}}};
  merge_exposition(node, read_exposition(kDcgm, "DCGM_"), families);
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[0].help, "ours");
  const std::string text = expose(families, TextFormat::kOpenMetrics);
  EXPECT_THAT(text, testing::HasSubstr("TENSOR_ACTIVE{gpu=\"0\""));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("GPU-1")));
  EXPECT_THAT(text, testing::HasSubstr("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"));
}

}  // namespace
}  // namespace aliquot::node
