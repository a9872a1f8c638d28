#include "cli/topo_measure.h"

#include <gmock/gmock.h>

#include "format/json.h"

namespace aliquot::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two GPUs with two NVLinks between them (50 GB/s), on PCIe 4.0 x16 (28.8 GB/s).
SourcedTopology two_gpus() {
  SourcedTopology topology{"simulated machine lab", true,
                           model::NodeTopology({{"GPU0", "", "", 0}, {"GPU1", "", "", 0}}, {})};
  topology.node.set_link(0, 1, model::nvlink(2));
  return topology;
}
std::vector<inventory::NvmlGpu> on_pcie_4() {
  std::vector<inventory::NvmlGpu> gpus(2);
  for (auto& gpu : gpus) gpu.pcie_max_generation = 4, gpu.pcie_max_width = 16;
  return gpus;
}
LinkMeasure good() {
  LinkMeasure measure;
  for (unsigned i = 0; i < 2; ++i) measure.hosts.push_back({i, {25'000, 3.2}, {26'000, 3}});
  measure.peers = {{0, 1, true, {46'000, 1.5}}, {1, 0, true, {46'000, 1.5}}};
  return measure;
}

TEST(LinkMeasure, APcieCeilingIsTheLanesLessCodeAndPacketHeads) {
  EXPECT_NEAR(pcie_ceiling_mb_s(3, 16), 14'400, 10) << "vendors' arithmetic, payload 256";
  EXPECT_NEAR(pcie_ceiling_mb_s(3, 16, 128), 13'265, 10);
  EXPECT_NEAR(pcie_ceiling_mb_s(5, 16), 57'600, 20);
  EXPECT_NEAR(pcie_ceiling_mb_s(1, 1), 228.6, 1) << "8b/10b";
  EXPECT_EQ(pcie_ceiling_mb_s(0, 16), 0);
  EXPECT_EQ(pcie_ceiling_mb_s(9, 16), 0);
}

TEST(TopoMeasure, ShowsWhatIsMeasuredBesideWhatCouldBe) {
  const std::string text = measure_text(two_gpus(), on_pcie_4(), good());
  EXPECT_THAT(text, HasSubstr("(simulated)"));
  EXPECT_THAT(text, testing::ContainsRegex("0 +25.0 +26.0 +28.8 +3.2 +PCIe 4.0 x16"));
  EXPECT_THAT(text, testing::ContainsRegex("GPU0 +- +46.0"));
  EXPECT_THAT(text, Not(HasSubstr("carries"))) << "all is well";
}

TEST(TopoMeasure, NamesWhatCarriesMuchLessThanItCould) {
  LinkMeasure measure = good();
  measure.hosts[1].to_device.mb_s = 6'000;
  measure.peers[0].way.mb_s = 20'000;
  measure.peers[1].direct = false;
  const std::string text = measure_text(two_gpus(), on_pcie_4(), measure);
  EXPECT_THAT(text, HasSubstr("host to GPU 1 carries 6.0 of 28.8 GB/s\n"));
  EXPECT_THAT(text, HasSubstr("GPU 0 to GPU 1 (NV2) carries 20.0 of 50.0 GB/s\n"));
  EXPECT_THAT(text, HasSubstr("46.0*"));
  EXPECT_THAT(text, HasSubstr("* no peer access"));
}

TEST(TopoMeasure, AnUnknownCeilingIsNoFinding) {
  LinkMeasure measure = good();
  measure.hosts[0].to_device.mb_s = 1;
  EXPECT_THAT(measure_text(two_gpus(), {}, measure), Not(HasSubstr("carries")));
}

TEST(TopoMeasure, JsonHasFiguresInMegabytesAndNanoseconds) {
  const auto json = format::parse_json(measure_json(two_gpus(), on_pcie_4(), good()), "stdout");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json->find("simulated")->if_bool(), true);
  const format::Json& host = (*json->find("hosts")->if_array())[0];
  EXPECT_EQ(*host.find("to_device")->find("mb_s")->if_int(), 25'000);
  EXPECT_EQ(*host.find("to_device")->find("latency_ns")->if_int(), 3'200);
  EXPECT_EQ(*host.find("ceiling_mb_s")->if_int(), 28'807);
  const format::Json& peer = (*json->find("peers")->if_array())[0];
  EXPECT_EQ(*peer.find("kind")->if_string(), "NV2");
  EXPECT_EQ(*peer.find("ceiling_mb_s")->if_int(), 50'000);
}

}  // namespace
}  // namespace aliquot::cli
