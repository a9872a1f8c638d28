#include "cli/topo_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "cli/machine_topology.h"
#include "cli/program.h"
#include "common/files.h"
#include "format/json.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kBridged[] =
    "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tNODE\tPIX\t0-31\t0\n"
    "GPU1\tNV4\t X \tNODE\tNODE\t0-31\t0\n"
    "GPU2\tNODE\tNODE\t X \tSYS\t32-63\t1\n"
    "NIC0\tPIX\tNODE\tSYS\t X \n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n";

// A file with the graph of three cards, and `aliquot topo` run on it.
class TopoCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aliquot-topo-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_TRUE(write_file_atomically(directory_ / "m.txt", kBridged));
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Of standard output, or what was said of the failure.
  std::string run(std::vector<std::string> words) {
    std::ostringstream out;
    std::ostringstream err;
    words.insert(words.begin(), {"aliquot", "topo"});
    Invocation invocation{out, err, std::move(words)};
    status_ = run_program(invocation);
    return status_ == 0 ? out.str() : err.str();
  }
  std::string on_file(std::vector<std::string> words) {
    words.insert(words.begin(), {"--from", (directory_ / "m.txt").string()});
    return run(std::move(words));
  }

  fs::path directory_;
  int status_ = 0;
};

TEST_F(TopoCommand, ShowsTheGraphOfASavedText) {
  const std::string file = (directory_ / "m.txt").string();
  EXPECT_EQ(on_file({}), file +
                             ": 3 GPUs, 1 NIC\n"
                             "      GPU0  GPU1  GPU2  NIC0  NUMA  CPUs\n"
                             "GPU0  -     NV4   NODE  PIX      0  0-31\n"
                             "GPU1  NV4   -     NODE  NODE     0  0-31\n"
                             "GPU2  NODE  NODE  -     SYS      1  32-63\n"
                             "one way, nominal: NV4 100 GB/s, NODE 10 GB/s\n"
                             "NIC0: mlx5_0\n");
  EXPECT_EQ(status_, 0);
}

TEST_F(TopoCommand, AnswersTheBestGpusOnALineOfTheirOwnAndWhy) {
  EXPECT_THAT(on_file({"--best", "2"}), StartsWith("0,1\n"));
  EXPECT_THAT(on_file({"--best", "2"}),
              HasSubstr("share 4 NVLinks each way, pair 100 GB/s; no other choice is as fast"));
  EXPECT_THAT(on_file({"--best", "1"}), StartsWith("2\n"));
  EXPECT_THAT(on_file({"--best", "2", "--exclude", "1", "--near-numa"}), StartsWith("0,2\n"));
  EXPECT_THAT(on_file({"--best", "2", "--include", "2", "--free", "1,2"}), StartsWith("1,2\n"));
}

TEST_F(TopoCommand, TakesTheGenerationThatATextCannotTell) {
  EXPECT_THAT(on_file({"--best", "2", "--nvlink-generation", "5"}), HasSubstr("pair 200 GB/s"));
}

TEST_F(TopoCommand, SaysNotNowOrNever) {
  EXPECT_THAT(on_file({"--best", "2", "--free", "0"}),
              HasSubstr("aliquot topo: not now: 2 GPUs asked, free are 1 (0)"));
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(on_file({"--best", "3", "--clique"}),
              HasSubstr("never: this node has no 3 GPUs joined pairwise by NVLink"));
  EXPECT_THAT(on_file({"--best", "3", "--same-numa"}), HasSubstr("never: "));
  EXPECT_THAT(on_file({"--best", "2", "--include", "x"}), HasSubstr("GPUs \"x\": write indices"));
}

TEST_F(TopoCommand, PlacesAFaultInTheFile) {
  ASSERT_TRUE(write_file_atomically(directory_ / "m.txt", "GPU0 GPU1\nGPU0 X PIX\n"));
  EXPECT_THAT(on_file({}), HasSubstr("m.txt:3:1: the row of GPU1 is missing"));
  EXPECT_EQ(status_, 1);
}

TEST_F(TopoCommand, NeedsBestForWhatNarrowsIt) {
  on_file({"--clique"});
  EXPECT_EQ(status_, kUsageError);
}

TEST_F(TopoCommand, ReadsAMatrixOfWeights) {
  ASSERT_TRUE(write_file_atomically(directory_ / "m.txt",
                                    "0 300 300 50 / 300 0 50 300 / 300 50 0 300 / 50 300 300 0"));
  EXPECT_THAT(on_file({"--best", "4"}), HasSubstr("ring 0-1-3-2 300 GB/s"));
  EXPECT_THAT(on_file({}), HasSubstr("GPU0  -     300   300   50"));
}

TEST_F(TopoCommand, PrintsJsonWithEveryLinkAndTheAnswer) {
  const auto json = format::parse_json(on_file({"--best", "2", "--json"}), "out");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->find("gpus")->if_array()->size(), 3u);
  EXPECT_EQ(json->find("links")->if_array()->size(), 6u);
  EXPECT_EQ(*json->find("simulated"), format::Json(false));
  const format::Json* best = json->find("best");
  EXPECT_EQ(*best->find("gpus"), format::Json(format::Json::Array{0, 1}));
  EXPECT_EQ(*best->find("ring_mb_s"), format::Json(100'000));
}

TEST_F(TopoCommand, ShowsASimulatedPresetAndSaysSo) {
  EXPECT_THAT(run({"--sim", "a100x8"}), StartsWith("simulated preset a100x8: 8 GPUs, 2 NICs\n"));
  EXPECT_THAT(run({"--sim", "a100x8", "--best", "4"}), StartsWith("0,1,2,3\n"));
  EXPECT_THAT(run({"--sim", "nosuch"}), HasSubstr("nosuch"));
  EXPECT_EQ(status_, 1);
}

TEST(MachineTopology, OfEveryPresetHasAllLinks) {
  const auto simulator = simdriver::simulator_directory();
  ASSERT_TRUE(simulator) << simulator.error().message;
  const auto names = simdriver::preset_names(*simulator);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_GE(names->size(), 8u);
  for (const std::string& name : *names) {
    const auto machine = simdriver::make_machine({name, {}, {}}, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    const model::NodeTopology node = topology_of(*machine);
    ASSERT_EQ(node.gpu_count(), machine->gpus.size());
    for (std::size_t a = 0; a < node.device_count(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        EXPECT_NE(node.link(a, b).kind, model::LinkKind::kSelf) << name;
        EXPECT_GT(node.link(a, b).bandwidth_mb_s, 0u) << name;
      }
  }
}

TEST(MachineTopology, CarriesTheRatesOfItsModels) {
  const auto simulator = simdriver::simulator_directory();
  const auto machine = simdriver::make_machine({"a100x8", {}, {}}, *simulator);
  ASSERT_TRUE(machine) << machine.error().message;
  const model::NodeTopology node = topology_of(*machine);
  EXPECT_EQ(node.link(0, 7).kind, model::LinkKind::kNvswitch);
  EXPECT_EQ(node.link(0, 7).nvlinks, 12);
  EXPECT_EQ(node.link(0, 7).bandwidth_mb_s, 12 * machine->model_of(0).nvlink.link_mb_per_s);
  EXPECT_EQ(node.nic_link(0, 0).kind, model::LinkKind::kPxb);
}

}  // namespace
}  // namespace aliquot::cli
