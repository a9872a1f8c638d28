#include "cli/replay_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "cli/program.h"
#include "cli/replay_cluster.h"
#include "common/files.h"
#include "format/json.h"
#include "support/shared_data.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kExamples = std::string(ALIQUOT_SOURCE_DIR) + "/examples/";
constexpr char kTrace[] =
    "name,arrival_s,duration_s,gpus,gpu_milli,gpu_memory_mib,cpu_milli,memory_mib,gpu_models\n"
    "a,0,10,8,1000,0,0,0,\nb,4,10,1,500,0,0,0,\n";

class ReplayCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aliquot-replay-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_TRUE(write_file_atomically(directory_ / "t.csv", kTrace));
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Of standard output, or what was said of the failure.
  std::string run(std::vector<std::string> words) {
    std::ostringstream out;
    std::ostringstream err;
    words.insert(words.begin(), {"aliquot", "replay"});
    Invocation invocation{out, err, std::move(words)};
    status_ = run_program(invocation);
    return status_ == 0 ? out.str() : err.str();
  }
  std::string file(const std::string& name) const { return (directory_ / name).string(); }

  fs::path directory_;
  int status_ = 0;
};

// The README's line.
TEST_F(ReplayCommand, ReplaysTheSampleTraceUnderOurs) {
  const std::string said = run({kExamples + "trace.csv", "--policy", "ours"});
  EXPECT_EQ(status_, 0);
  EXPECT_THAT(said, StartsWith("simulated: 400 jobs of trace.csv replayed in virtual time on "
                               "cluster.csv (68 GPUs on 13 nodes: 24 A100, 16 H100, 16 L40S, 12 "
                               "T4)\npolicy"));
  EXPECT_THAT(said, ContainsRegex("\nours +[0-9]+ +[0-9]+ +0 +0 +[0-9.]+ %"));
}

TEST_F(ReplayCommand, LaysPoliciesSideBySideInEveryFile) {
  const std::string said =
      run({file("t.csv"), "--cluster", "a100x8", "--policy", "ours,fgd,topology", "--csv",
           file("o.csv"), "--json", file("o.json"), "--html", file("o.html")});
  ASSERT_EQ(status_, 0) << said;
  EXPECT_THAT(said, HasSubstr("(8 GPUs on 1 node: 8 a100-sxm4-80gb)"));
  EXPECT_THAT(said, HasSubstr("wrote " + file("o.html")));
  const auto json = format::parse_json(read_file(file("o.json")).value(), "o.json");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->find("runs")->if_array()->size(), 3u);
  EXPECT_EQ(*json->find("cluster"), format::Json("a100x8"));
  const std::string csv = read_file(file("o.csv")).value();
  EXPECT_THAT(csv, HasSubstr("\ntopology,4,8000,8000,8000,0,1,1\n"));
  const std::string page = read_file(file("o.html")).value();
  for (const char* policy : {"ours", "fgd", "topology"}) EXPECT_THAT(page, HasSubstr(policy));
  EXPECT_THAT(page, HasSubstr("A preset describes no host"));
  run({file("t.csv"), "--cluster", "a100x8", "--dense", "4", "--html", file("o.html")});
  EXPECT_THAT(read_file(file("o.html")).value(), HasSubstr("arrive 4 times as densely"));
}

TEST_F(ReplayCommand, SaysWhatToDoAboutAPolicyOrAClusterThatIsNotThere) {
  EXPECT_THAT(run({file("t.csv"), "--cluster", "a100x8", "--policy", "best"}),
              HasSubstr("policy 'best': there are random"));
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(run({file("t.csv"), "--cluster", "a100x8", "--policy", "fgd,ours,rollout"}),
              HasSubstr("rollout is named twice"));
  EXPECT_THAT(run({file("t.csv")}), HasSubstr("name a cluster by --cluster FILE"));
  EXPECT_THAT(run({file("t.csv"), "--cluster", "no/such.csv"}), HasSubstr("no such file"));
  EXPECT_THAT(run({file("t.csv"), "--cluster", "nosuchx3"}), HasSubstr("nosuch"));
  EXPECT_THAT(run({file("t.csv"), "--cluster", "a100x8x0"}), HasSubstr("1 to 50000 nodes"));
}

TEST_F(ReplayCommand, PlacesAFaultInTheTraceAndWritesNothing) {
  ASSERT_TRUE(
      write_file_atomically(directory_ / "t.csv", std::string(kTrace) + "c,1,x,0,0,0,0,0,\n"));
  EXPECT_THAT(run({file("t.csv"), "--cluster", "a100x8", "--csv", file("o.csv")}),
              StartsWith("aliquot replay: t.csv:4:5: duration_s: 'x' is not a whole number"));
  EXPECT_EQ(status_, 1);
  EXPECT_FALSE(fs::exists(file("o.csv")));
}

TEST_F(ReplayCommand, InflatesAnOpenbListByThePapersProtocol) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  const fs::path lists = *data / "traces/openb";
  const std::string said =
      run({(lists / "openb_pod_list_multigpu20.csv").string(), "--inflation", "--policy", "fgd",
           "--cluster", (lists / "openb_node_list_gpu_node.csv").string()});
  EXPECT_EQ(status_, 0) << said;
  EXPECT_THAT(said, HasSubstr("6212 GPUs on 1213 nodes"));
  EXPECT_THAT(said, ContainsRegex("\nfgd +9[0-9]\\.[0-9]+ % +9[0-9]\\.[0-9]+ %"));
}

TEST_F(ReplayCommand, InflatesWithSeveralSeedsIntoEveryFile) {
  ASSERT_TRUE(write_file_atomically(directory_ / "pods.csv",
                                    "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                                    "a,1000,10,1,400\nb,1000,10,2,1000\nc,1000,10,0,0\n"));
  const std::string said =
      run({file("pods.csv"), "--inflation", "--seeds", "3", "--policy", "ours,fgd", "--cluster",
           "a100x8x2", "--csv", file("o.csv"), "--json", file("o.json"), "--html", file("o.html")});
  ASSERT_EQ(status_, 0) << said;
  EXPECT_THAT(said, HasSubstr("(seeds 42 to 44: mean, least-most)"));
  EXPECT_THAT(said, ContainsRegex("\nfgd +[0-9.]+ % \\([0-9.]+-[0-9.]+\\)"));
  const auto json = format::parse_json(read_file(file("o.json")).value(), "o.json");
  ASSERT_TRUE(json) << json.error().message;
  ASSERT_EQ(json->find("runs")->if_array()->size(), 2u);
  EXPECT_EQ((*json->find("runs")->if_array())[1].find("seeds")->if_array()->size(), 3u);
  EXPECT_THAT(read_file(file("o.csv")).value(), HasSubstr("\nfgd,44,130,"));
  EXPECT_THAT(read_file(file("o.html")).value(), HasSubstr("Inflation of pods.csv"));
}

TEST_F(ReplayCommand, AnswersTheThreeQuestions) {
  const std::string said = run({file("t.csv"), "--answers", "--policy", "binpack", "--cluster",
                                "dgx1-v100x2", "--html", file("o.html")});
  ASSERT_EQ(status_, 0) << said;
  EXPECT_THAT(said, HasSubstr("use under 30 % of what they hold; those waste"));
  EXPECT_THAT(said, HasSubstr("Sharing raises the use of GPUs that are held from"));
  EXPECT_THAT(said, HasSubstr("By links instead of at random: inside a node 1 job runs 0.0 %"));
  EXPECT_THAT(read_file(file("o.html")).value(), HasSubstr("<h2>Answers</h2>"));
  EXPECT_THAT(run({file("t.csv"), "--answers", "--policy", "fgd,ours", "--cluster", "t4x1"}),
              HasSubstr("--answers: takes one policy"));
}

TEST_F(ReplayCommand, RunsUnderTheTimeModelAndNamesWhatItCalls) {
  run({file("t.csv"), "--time", "modelled", "--cluster", "a100x8", "--html", file("o.html")});
  EXPECT_EQ(status_, 0);
  EXPECT_THAT(read_file(file("o.html")).value(), HasSubstr("Time model:"));
  EXPECT_THAT(run({"--help"}), HasSubstr("ours (rollout)"));
}

TEST(ReplayCluster, CountsMachinesOfAPreset) {
  const auto one = cluster_of("a100x8");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->nodes.size(), 1u);
  const auto four = cluster_of("a100x8x4");
  ASSERT_TRUE(four) << four.error().message;
  ASSERT_EQ(four->nodes.size(), 4u);
  EXPECT_EQ(four->nodes[3].gpu_count, 8);
  EXPECT_EQ(four->nodes[3].gpu.compute_capability, 80);
  EXPECT_EQ(four->topologies.at(four->nodes[3].topology).gpu_count(), 8u);
  const auto singles = cluster_of("t4x1x3");
  ASSERT_TRUE(singles) << singles.error().message;
  EXPECT_EQ(singles->nodes.size(), 3u);
}

TEST_F(ReplayCommand, TakesDomainsFromSlurmHyperNodesAndLabels) {
  auto cluster = cluster_of("t4x1x3");
  ASSERT_TRUE(cluster);
  const auto domains_of = [&](const char* text) {
    for (model::NodeSpec& node : cluster->nodes) node.domains.clear();
    EXPECT_TRUE(write_file_atomically(directory_ / "d", text));
    const Status done = add_domains(directory_ / "d", *cluster);
    return done ? cluster->nodes[1].domains : std::vector<std::string>{done.error().message};
  };
  using testing::ElementsAre;
  EXPECT_THAT(domains_of("SwitchName=s0 Nodes=t4x1-[0-2]\nSwitchName=top Switches=s0\n"),
              ElementsAre("top", "s0"));
  EXPECT_THAT(domains_of(R"([{"kind": "Node", "metadata": {"name": "t4x1-1"}},
      {"kind": "HyperNode", "metadata": {"name": "leaf"}, "spec": {"tier": 1, "members": [
       {"type": "Node", "selector": {"regexMatch": {"pattern": "^t4"}}}]}}])"),
              ElementsAre("leaf"));
  EXPECT_THAT(cluster->assumptions.back(), HasSubstr("2 of 3 nodes are in no domain of d"));
  EXPECT_THAT(domains_of(R"({"kind": "Node", "metadata": {"name": "t4x1-1",
                             "labels": {"network.topology.nvidia.com/block": "b1"}}})"),
              ElementsAre("b1"));
  EXPECT_THAT(
      domains_of(R"([{"kind": "Node", "metadata": {"name": "t4x1-1", "labels": {"rack": "r"}}},
                             {"kind": "Topology", "metadata": {"name": "t"},
                              "spec": {"levels": [{"nodeLabel": "rack"}]}}])"),
      ElementsAre("r"));
  EXPECT_THAT(domains_of("SwitchName=s0 Nodes=other\n"),
              ElementsAre(HasSubstr("names none of the nodes; the first is 't4x1-0'")));
}

}  // namespace
}  // namespace aliquot::cli
