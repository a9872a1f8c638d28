#include "node/dcgm_source.h"

#include <gmock/gmock.h>

#include "kube/fake_server.h"

namespace aliquot::node {
namespace {

std::string served(DcgmSource& source) {
  std::vector<Family> families;
  source.add_to({}, families);
  return expose(families, TextFormat::kPrometheus);
}

TEST(DcgmSource, ItsSeriesComeWithOurs) {
  const kube::FakeServer exporter([](const kube::FakeRequest& request) {
    kube::FakeReply reply;
    reply.body =
        request.path == "/metrics" ? "DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\"} 0.5\nup 1\n" : "";
    return reply;
  });
  DcgmSource source(exporter.url(), log::Log());
  const std::string text = served(source);
  EXPECT_THAT(text, testing::HasSubstr("\nDCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\"} 0.5\n"));
  EXPECT_THAT(text, testing::HasSubstr("\naliquot_node_dcgm_up 1\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("\nup ")));
}

TEST(DcgmSource, OneThatDoesNotAnswerCostsItsSeriesOnly) {
  DcgmSource source("http://127.0.0.1:1", log::Log());
  EXPECT_THAT(served(source), testing::HasSubstr("\naliquot_node_dcgm_up 0\n"));
}

TEST(DcgmSource, AnErrorOfTheExporterIsNoSeries) {
  const kube::FakeServer exporter([](const kube::FakeRequest&) {
    kube::FakeReply reply;
    reply.status = 500;
    reply.body = "DCGM_X 1\n";
    return reply;
  });
  DcgmSource source(exporter.url(), log::Log());
  EXPECT_THAT(served(source), testing::Not(testing::HasSubstr("DCGM_X")));
}

}  // namespace
}  // namespace aliquot::node
