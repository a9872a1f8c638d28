#include "scheduler/policy.h"

#include <gtest/gtest.h>

#include "scheduler/fragmentation.h"
#include "scheduler/rollout.h"
#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using test::node;
using test::share;
using test::whole;

// The node of a cluster without memory figures, as in openb: shares are of compute only.
model::NodeSpec plain(std::string name, int gpus, std::string gpu_model = "T4") {
  model::NodeSpec spec = node(std::move(name), gpus, std::move(gpu_model));
  spec.gpu.memory_bytes = 0;
  return spec;
}

model::Request part(int cores) { return share(cores, 0); }

ShareState state_of(std::int32_t cpu, std::vector<std::int16_t> free) {
  ShareState state;
  state.cpu_milli = cpu;
  state.gpus = static_cast<std::int32_t>(free.size());
  std::copy(free.begin(), free.end(), state.free.begin());
  return state;
}

NodeShape shape(int gpus) { return shape_of(plain("n", gpus)); }

Scheduler with(std::string_view policy, std::vector<model::NodeSpec> nodes,
               Workload workload = {}) {
  PolicyInput input;
  input.capacity = capacity_of(nodes);
  input.workload = std::move(workload);
  return {std::move(nodes), std::move(*make_policy(policy, input))};
}

int node_for(Scheduler& s, const model::Request& request) {
  return s.place(request)->placement.node;
}

// Puts the request on this node, whatever the policy would choose.
void put(Scheduler& s, NodeId on, const model::Request& request) {
  const std::vector<NodeId> within{on};
  ASSERT_EQ(s.place(*s.classify(request), within).outcome, Outcome::kPlaced);
}

TEST(Fragmentation, CountsGpusTooSmallForAShapeThatFits) {
  Fragmentation f(workload_of({{1'000, 500, 1, {}, 1}}, 100));
  // 300 is too small for 500, 700 is not.
  EXPECT_EQ(f.of(state_of(2'000, {300, 700}), shape(2)), 300);
}

TEST(Fragmentation, CountsEverythingForAShapeThatDoesNotFit) {
  Fragmentation f(workload_of({{1'000, 1'000, 2, {}, 1}}, 100));
  EXPECT_EQ(f.of(state_of(2'000, {700, 1'000}), shape(2)), 1'700);  // by GPU
  EXPECT_EQ(f.of(state_of(999, {1'000, 1'000}), shape(2)), 2'000);  // by CPU
}

TEST(Fragmentation, CountsEverythingForOtherModelsAndForPodsWithoutGpu) {
  Fragmentation typed(workload_of({{0, 500, 1, {"A10"}, 1}}, 100));
  EXPECT_EQ(typed.of(state_of(2'000, {1'000}), shape(1)), 1'000);
  Fragmentation cpu_only(workload_of({{500, 0, 0, {}, 1}}, 100));
  EXPECT_EQ(cpu_only.of(state_of(2'000, {1'000}), shape(1)), 1'000);
}

TEST(Fragmentation, WeighsShapesByTheirCount) {
  Fragmentation f(workload_of({{0, 500, 1, {}, 3}, {0, 800, 1, {}, 1}}, 100));
  EXPECT_EQ(f.of(state_of(0, {600}), shape(1)), 600);  // once, for the shape of 800
  EXPECT_EQ(f.total(), 4);
}

TEST(Workload, KeepsTheShapesThatCoverThePartAsked) {
  const Workload w = workload_of({{1, 1, 1, {}, 90}, {2, 2, 1, {}, 6}, {3, 3, 1, {}, 4}}, 95);
  ASSERT_EQ(w.shapes.size(), 2u);
  EXPECT_EQ(w.total, 96);
}

TEST(Workload, SpreadsNamedDemandOverTheModelsNamed) {
  const Workload w = workload_of({{0, 1'000, 1, {"A"}, 1}, {0, 1'000, 1, {}, 3}}, 100);
  // A quarter of the demand names A, which is half of the GPUs.
  EXPECT_EQ(named_load(w, {{"A", 4'000}, {"B", 4'000}}), (std::vector<int>{500, 0}));
}

TEST(Fgd, PutsAShareWhereItLeavesNoFragment) {
  Scheduler s = with("fgd", {plain("a", 1), plain("b", 1)},
                     workload_of({{0, 500, 1, {}, 1}, {0, 1'000, 1, {}, 1}}));
  put(s, 1, part(500));
  EXPECT_EQ(node_for(s, part(500)), 1);
}

TEST(Fgd, ChoosesTheGpuInsideTheNodeByTheSameMeasure) {
  Scheduler s = with("fgd", {plain("a", 2)}, workload_of({{0, 700, 1, {}, 1}}));
  put(s, 0, part(700));
  // 300 more on the GPU in use leaves nothing; on the idle one it would leave 700, which still
  // serves, and keep 300 wasted.
  const Decision d = *s.place(part(300));
  EXPECT_EQ(d.placement.gpus.at(0).gpu, 0);
}

TEST(BestFit, TakesTheNodeWithLeastLeft) {
  Scheduler s = with("bestfit", {plain("large", 8), plain("small", 1)});
  EXPECT_EQ(node_for(s, whole(1)), 1);
}

TEST(Clustering, KeepsLikeWithLike) {
  Scheduler s = with("clustering", {plain("a", 4), plain("b", 4)});
  put(s, 1, part(500));
  EXPECT_EQ(node_for(s, part(500)), 1);
  EXPECT_EQ(node_for(s, whole(2)), 0);
}

TEST(Packing, SharesAGpuInUseBeforeItOpensAnother) {
  Scheduler s = with("packing", {plain("a", 2), plain("b", 2)});
  put(s, 1, part(500));
  EXPECT_EQ(node_for(s, part(500)), 1);
  EXPECT_EQ(node_for(s, part(500)), 1);  // a free GPU of a node in use
  EXPECT_EQ(s.snapshot().pods(0), 0);
}

TEST(Spread, TakesTheEmptiestNodeAndGpu) {
  Scheduler s = with("spread", {plain("a", 2), plain("b", 2)});
  const std::vector<NodeId> within{0};
  const ClassId small = *s.classify(part(100));
  const int first = s.place(small, within).placement.gpus.at(0).gpu;
  EXPECT_EQ(node_for(s, part(100)), 1);
  EXPECT_NE(s.place(small, within).placement.gpus.at(0).gpu, first);
}

TEST(Binpack, TakesTheFullestNode) {
  Scheduler s = with("binpack", {plain("a", 2), plain("b", 2)});
  put(s, 1, part(100));
  EXPECT_EQ(node_for(s, part(100)), 1);
}

TEST(Random, IsReproducedByItsSeed) {
  const auto run = [] {
    Scheduler s = with("random", {plain("a", 4), plain("b", 4), plain("c", 4)});
    std::vector<int> nodes;
    for (int i = 0; i < 12; ++i) nodes.push_back(node_for(s, whole(1)));
    return nodes;
  };
  EXPECT_EQ(run(), run());
}

TEST(Rollout, ValuesANodeByWhatStaysIdle) {
  Rollout r(workload_of({{1'000, 500, 1, {}, 1}}, 100), {});
  // Two of 500 fill the GPU; of 700 each sequence leaves 200.
  EXPECT_EQ(r.idle_left(state_of(64'000, {1'000}), shape(1)), 0);
  EXPECT_EQ(r.idle_left(state_of(64'000, {700}), shape(1)), 200 * r.sequences());
  // Without CPU nothing can use it.
  EXPECT_EQ(r.idle_left(state_of(999, {700}), shape(1)), 700 * r.sequences());
}

TEST(Rollout, KeepsModelsFreeThatOthersName) {
  const Workload w = workload_of({{1'000, 1'000, 1, {}, 6}, {1'000, 1'000, 1, {"T4"}, 4}}, 100);
  Scheduler s = with("rollout", {plain("t4", 1, "T4"), plain("other", 1, "P100")}, w);
  EXPECT_EQ(node_for(s, whole(1)), 1);
}

TEST(Rollout, KeepsTheLastIdleNodesWhole) {
  const Workload w = workload_of({{1'000, 1'000, 1, {}, 9}, {1'000, 1'000, 8, {}, 1}}, 100);
  Scheduler s = with("rollout", {plain("idle", 8), plain("used", 8)}, w);
  put(s, 1, whole(1));
  EXPECT_EQ(node_for(s, whole(1)), 1);
  EXPECT_EQ(node_for(s, whole(8)), 0);
}

// Two linked pairs, 0-1 by two NVLinks and 2-3 by one; all else through the CPUs.
model::NodeTopology pairs() {
  std::vector<model::Device> gpus(4);
  model::NodeTopology topology(gpus, {});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b)
      topology.set_link(a, b,
                        a / 2 == b / 2 ? model::nvlink(a == 0 ? 2 : 1, 2)
                                       : model::path_link(model::LinkKind::kSys, 3));
  return topology;
}

Scheduler linked(std::vector<model::NodeSpec> nodes) {
  PolicyInput input;
  input.topologies["pairs"] = pairs();
  for (model::NodeSpec& n : nodes) n.topology = "pairs";
  return {std::move(nodes), std::move(*make_policy("topology", input))};
}

std::vector<int> gpus_of(const Decision& d) {
  std::vector<int> gpus;
  for (const model::GpuPart& part : d.placement.gpus) gpus.push_back(part.gpu);
  return gpus;
}

TEST(Topology, TakesThePairWithTheWidestLink) {
  Scheduler s = linked({node("a", 4)});
  EXPECT_EQ(gpus_of(*s.place(whole(2))), (std::vector<int>{0, 1}));
  EXPECT_EQ(gpus_of(*s.place(whole(2))), (std::vector<int>{2, 3}));
}

TEST(Topology, TakesTheNodeWhoseBestPairIsWidest) {
  Scheduler s = linked({node("a", 4), node("b", 4)});
  EXPECT_EQ(node_for(s, whole(2)), 0);
  EXPECT_EQ(node_for(s, whole(2)), 1);  // a has only its weaker pair left
}

TEST(Topology, OneGpuLeavesTheBestPairWhole) {
  Scheduler s = linked({node("a", 4)});
  EXPECT_EQ(gpus_of(*s.place(whole(1))), (std::vector<int>{2}));
  EXPECT_EQ(gpus_of(*s.place(whole(1))), (std::vector<int>{3}));
}

TEST(Topology, SharesAGpuInUseBeforeItBreaksAPair) {
  Scheduler s = linked({node("a", 4)});
  ASSERT_EQ(gpus_of(*s.place(share(200, test::kGiB))), (std::vector<int>{2}));
  EXPECT_EQ(gpus_of(*s.place(share(200, test::kGiB))), (std::vector<int>{2}));
}

TEST(Topology, RefusesWhatIsNotTiedAsAskedAndSaysSo) {
  Scheduler s = linked({node("a", 4), node("b", 4)});
  model::Request three = whole(3);
  three.links = model::LinkNeed::kNvlink;
  EXPECT_EQ(s.place(three)->outcome, Outcome::kNever);
  EXPECT_EQ(s.explain(*s.classify(three)).text(),
            "never: 2 nodes: 4 GPUs free, none pair by NVLink");
  model::Request two = whole(2);
  two.links = model::LinkNeed::kNvlink;
  EXPECT_EQ(s.place(two)->outcome, Outcome::kPlaced);
}

TEST(Topology, PromisesNoLinksOnANodeOfUnknownShape) {
  PolicyInput input;
  Scheduler s({node("a", 4)}, std::move(*make_policy("topology", input)));
  model::Request two = whole(2);
  two.links = model::LinkNeed::kNvlink;
  EXPECT_EQ(s.place(two)->outcome, Outcome::kNever);
  EXPECT_EQ(s.place(whole(2))->outcome, Outcome::kPlaced);
}

TEST(Quiet, TakesTheGpuThatMeasuresLeastBusyThoughItPromisedMore) {
  Scheduler s = test::scheduler_of({test::node("a", 2), test::node("b", 2)}, "quiet");
  // Both GPUs of a promised 300 and work at 900; of b one promised 600 and works at 100.
  for (const int gpu : {0, 1}) s.snapshot().set_measured_compute(0, gpu, 900, 0);
  const std::vector<NodeId> on_b{1};
  ASSERT_EQ(s.place(*s.classify(test::share(600, 0)), on_b).outcome, Outcome::kPlaced);
  s.snapshot().set_measured_compute(1, 0, 100, 0);
  s.snapshot().set_measured_compute(1, 1, 500, 0);
  const Result<Decision> d = s.place(test::share(300, 0));
  ASSERT_TRUE(d);
  EXPECT_EQ(d->placement.node, 1);
  EXPECT_EQ(d->placement.gpus[0].gpu, 0);
}

TEST(Quiet, BelievesAMeasurementLessTheOlderItIs) {
  const auto node_taken = [](std::int64_t age_s) {
    Scheduler s = test::scheduler_of({test::node("a", 1), test::node("b", 1)}, "quiet");
    // b works at 400 just now; a was seen at 900 a while ago, and nothing is promised on it.
    s.snapshot().set_measured_compute(0, 0, 900, age_s);
    s.snapshot().set_measured_compute(1, 0, 400, 0);
    return s.place(test::share(100, 0))->placement.node;
  };
  EXPECT_EQ(node_taken(0), 1);
  EXPECT_EQ(node_taken(Snapshot::kMeasuredFades / 3), 1);
  EXPECT_EQ(node_taken(Snapshot::kMeasuredFades * 2 / 3), 0);
  EXPECT_EQ(node_taken(Snapshot::kMeasuredFades * 10), 0);
}

TEST(Quiet, IsTheOnlyOneWhoseStatesDependOnMeasurements) {
  Scheduler binpack = test::scheduler_of({test::node("a", 2), test::node("b", 2)});
  Scheduler quiet = test::scheduler_of({test::node("a", 2), test::node("b", 2)}, "quiet");
  for (Scheduler* s : {&binpack, &quiet}) s->snapshot().set_measured_compute(0, 1, 700, 0);
  EXPECT_EQ(binpack.snapshot().state_id(0), binpack.snapshot().state_id(1));
  EXPECT_NE(quiet.snapshot().state_id(0), quiet.snapshot().state_id(1));
}

TEST(Policies, AreFoundByExactNameOnly) {
  EXPECT_TRUE(make_policy("fgd", {}));
  const auto refused = make_policy("fg", {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("random, dotprod"), std::string::npos);
}

}  // namespace
}  // namespace aliquot::scheduler
