#include "replay/openb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/shared_data.h"

namespace aliquot::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "n0,64000,262144,2,P100\n"
    "n1,32000,1024,0,\n";
constexpr std::string_view kShort =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    "p0,12000,16384,1,1000\n"
    "p1,6000,12288,1,460\n";
constexpr std::string_view kLong =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p0,1,2,1,1000,V100M32|V100M16,LS,Running,10,20,15\n"
    "p1,1,2,0,0,,BE,Pending,10,20,\n";

std::string error_of(std::string_view pods) {
  const auto read = parse_openb_pods(pods, "pods.csv");
  return read ? "read" : read.error().message;
}

TEST(Openb, ReadsNodes) {
  const auto nodes = *parse_openb_nodes(kNodes, "nodes.csv");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].gpu.name, "P100");
  EXPECT_EQ(nodes[0].memory_bytes, model::Bytes{262144} << 20);
  EXPECT_EQ(nodes[1].gpu_count, 0);
}

TEST(Openb, ReadsListsOfFiveAndOfElevenColumns) {
  EXPECT_EQ(parse_openb_pods(kShort, "pods.csv")->at(1).gpu_milli, 460);
  const auto pods = *parse_openb_pods(kLong, "pods.csv");
  EXPECT_THAT(pods[0].gpu_spec, testing::ElementsAre("V100M16", "V100M32"));
  EXPECT_EQ(pods[0].scheduled_s, 15);
  EXPECT_EQ(pods[1].scheduled_s, std::nullopt);
}

TEST(Openb, SaysFileLineAndColumnOfWhatIsWrong) {
  EXPECT_THAT(error_of("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12x,1,1,1000\n"),
              StartsWith("pods.csv:2:4: cpu_milli: '12x' is not a whole number"));
  EXPECT_THAT(error_of("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,1,1,1000\np1,1,1,1\n"),
              StartsWith("pods.csv:3:"));
  EXPECT_THAT(error_of("name,cpu,memory_mib,num_gpu,gpu_milli\n"),
              StartsWith("pods.csv:1:6: expected column 'cpu_milli'"));
  EXPECT_THAT(error_of(""), StartsWith("pods.csv:1:1: empty"));
}

TEST(Openb, RefusesAmountsThatCannotBe) {
  const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
  EXPECT_THAT(error_of(header + "p,1,1,17,1000\n"), HasSubstr("not within 0 to 16"));
  EXPECT_THAT(error_of(header + "p,-1,1,1,1000\n"), HasSubstr("not within"));
  EXPECT_THAT(error_of(header + "p,99999999999999999999,1,1,1000\n"), HasSubstr("not within"));
  EXPECT_THAT(error_of(header + "p,1,1,0,500\n"), HasSubstr("exactly where num_gpu is 0"));
  EXPECT_THAT(error_of(header + ",1,1,1,500\n"), HasSubstr("name: empty"));
}

TEST(Openb, RefusesAHeaderThatGoesOnOtherwise) {
  EXPECT_THAT(error_of("name,cpu_milli,memory_mib,num_gpu,gpu_milli,color\n"),
              HasSubstr("expected column 'gpu_spec'"));
}

TEST(Openb, ATimeBeforeCreationIsAnError) {
  std::string bad(kLong);
  bad.replace(bad.find(",10,20,15"), 9, ",10,2,,,,");
  EXPECT_NE(error_of(bad), "read");
}

TEST(Openb, AWholeGpuIsAskedWholeAndAPartAsAShare) {
  const auto pods = *parse_openb_pods(kShort, "pods.csv");
  EXPECT_EQ(request_of(pods[0]).containers[0].gpu->kind, model::GpuKind::kWhole);
  const model::Request share = request_of(pods[1]);
  EXPECT_EQ(share.containers[0].gpu->kind, model::GpuKind::kShare);
  EXPECT_EQ(share.containers[0].gpu->cores_milli, 460);
}

TEST(Openb, ReadsAllTwentyFourLists) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "the openb traces are not here";
  std::size_t lists = 0;
  for (const auto& file : std::filesystem::directory_iterator(*data / "traces/openb")) {
    if (!file.path().filename().string().starts_with("openb_pod_list")) continue;
    const auto pods = read_openb_pods(file.path());
    ASSERT_TRUE(pods) << pods.error().message;
    EXPECT_GT(pods->size(), 7'000u);
    ++lists;
  }
  EXPECT_EQ(lists, 24u);
  const auto nodes = *read_openb_nodes(*data / "traces/openb/openb_node_list_gpu_node.csv");
  EXPECT_EQ(nodes.size(), 1'213u);
}

}  // namespace
}  // namespace aliquot::replay
