// Every collected matrix and every preset: the tables answer as trying every order of every set
// does, for all GPUs free and for random sets of free ones, with and without constraints.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "cli/machine_topology.h"
#include "common/files.h"
#include "inventory/topology_text.h"
#include "simdriver/presets.h"
#include "support/shared_data.h"
#include "support/topology_oracle_runs.h"
#include "topology/best_table.h"
#include "topology/reason.h"

namespace aliquot::topology {
namespace {

void expect_exact(const std::string& name, const model::NodeTopology& node) {
  SCOPED_TRACE(name);
  const Result<Shape> shape = Shape::of(node);
  ASSERT_TRUE(shape) << shape.error().message;
  const BestTable table(*shape);
  std::mt19937_64 random(1);
  for (unsigned count = 1; count <= shape->size(); ++count) {
    std::vector<Request> requests(3, oracle::random_request(random, shape->size()));
    requests[0] = {.count = count, .free = shape->all()};
    requests[1] = {.count = count, .free = shape->all(), .near_nics = true, .near_numa = true};
    for (const Request& request : requests) {
      const auto expected = oracle::best_by_orders(node, request);
      const auto found = table.best(request);
      ASSERT_EQ(found.has_value(), expected.has_value());
      if (!expected) continue;
      EXPECT_EQ(*found, expected->set);
      EXPECT_TRUE(rating_of(*shape, request, *found) == expected->rating);
      EXPECT_FALSE(reason_for(node, *shape, request, *found).empty());
    }
  }
}

TEST(KnownMachines, OfTheCollectionAreSearchedExactly) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data here (ALIQUOT_SHARED_DATA)";
  unsigned matrices = 0;
  for (const auto& file : std::filesystem::directory_iterator(*data / "topo")) {
    if (file.path().extension() != ".txt") continue;
    const auto text = read_file(file.path());
    ASSERT_TRUE(text) << text.error().message;
    const auto node = inventory::parse_topology(*text, file.path().filename().string());
    if (!node) continue;  // the incomplete ones: topology_text_test
    expect_exact(file.path().filename().string(), *node);
    ++matrices;
  }
  EXPECT_EQ(matrices, 25u);
}

// Of every pair that the preset has too, in the words of the text; CPUs and rates are the preset's.
TEST(KnownMachines, ThatPresetsWereTakenFromHaveTheirLinks) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data here (ALIQUOT_SHARED_DATA)";
  const auto simulator = simdriver::simulator_directory();
  ASSERT_TRUE(simulator) << simulator.error().message;
  constexpr std::pair<const char*, const char*> kTaken[] = {
      {"a100x8", "a100_sxm4_8x_2nic.txt"},
      {"dgx1-v100", "dgx1_v100_8x_4nic.txt"},
      {"h100x8", "hgx_h100_8x_8nic.txt"},
      {"l40sx4", "l40s_4x_2nic.txt"},
      {"rtx4090x8", "rtx4090_8x_all_sys.txt"}};
  for (const auto& [preset, file] : kTaken) {
    SCOPED_TRACE(preset);
    const auto text = read_file(*data / "topo" / file);
    ASSERT_TRUE(text) << text.error().message;
    const auto printed = inventory::parse_topology(*text, file);
    ASSERT_TRUE(printed) << printed.error().message;
    const auto machine = simdriver::make_machine({preset, {}, {}}, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    const model::NodeTopology made = cli::topology_of(*machine);
    ASSERT_EQ(made.gpu_count(), printed->gpu_count());
    ASSERT_EQ(made.nic_count(), printed->nic_count());
    for (std::size_t gpu = 0; gpu < made.gpu_count(); ++gpu)
      for (std::size_t other = 0; other < made.device_count(); ++other)
        EXPECT_EQ(model::link_text(made.link(gpu, other)),
                  model::link_text(printed->link(gpu, other)))
            << gpu << " to " << other;
  }
}

TEST(KnownMachines, OfThePresetsAreSearchedExactly) {
  const auto simulator = simdriver::simulator_directory();
  ASSERT_TRUE(simulator) << simulator.error().message;
  const auto names = simdriver::preset_names(*simulator);
  ASSERT_TRUE(names) << names.error().message;
  for (const std::string& name : *names) {
    const auto machine = simdriver::make_machine({name, {}, {}}, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    expect_exact(name, cli::topology_of(*machine));
  }
}

}  // namespace
}  // namespace aliquot::topology
