#include "node/node_figures.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

FiguresSources sources() {
  FiguresSources all;
  all.now = 1000 * kSecond;
  all.now_unix_s = 5000;
  KnownGpu a, b;
  a.uuid = "GPU-a";
  b.uuid = "GPU-b";
  all.gpus = {a, b};
  LatestReading fresh, stale;
  fresh.uuid = "GPU-a";
  fresh.read_at = 998 * kSecond;
  fresh.reading.emplace();
  fresh.reading->state.memory = {1000, 100, 300, 600};
  fresh.reading->state.gpu_percent = 50;
  fresh.reading->state.power_mw = 250'000;
  fresh.reading->state.energy_mj = 12'500;
  fresh.reading->health.nvlinks_up = {true, true, false};
  stale = fresh;
  stale.uuid = "GPU-b";
  stale.read_at = 900 * kSecond;
  all.readings = {fresh, stale};
  broker::LeaseRow lease;
  lease.name = "p.main.1234";
  lease.processes = 2;
  broker::UsageRow usage;
  usage.uuid = "GPU-a";
  usage.limit_bytes = 400;
  usage.used_bytes = 40;
  usage.cores = 3000;
  usage.waiting_ns = 2'500'000'000;
  lease.gpus = {usage};
  all.leases = {lease};
  all.usage[{"p.main.1234", 0, "GPU-a"}] = {4000, 3000, 1.5, 80};
  return all;
}

TEST(NodeFigures, AGpuHasItsReadingInBaseUnits) {
  const NodeFigures figures = figures_of(sources());
  const GpuFigures& gpu = figures.gpus.at(0);
  EXPECT_EQ(gpu.memory_total_bytes, 900u);
  EXPECT_EQ(gpu.utilization, 0.5);
  EXPECT_EQ(gpu.power_w, 250);
  EXPECT_EQ(gpu.energy_j, 12.5);
  EXPECT_EQ(gpu.nvlinks_up, 2u);
  EXPECT_EQ(gpu.age_s, 2);
  EXPECT_EQ(gpu.memory_granted_bytes, 400u);
  EXPECT_EQ(gpu.leases, 1u);
}

TEST(NodeFigures, AGpuThatDoesNotAnswerShowsItsAgeAndNoOldValues) {
  const GpuFigures gpu = figures_of(sources()).gpus.at(1);
  EXPECT_EQ(gpu.age_s, 100);
  EXPECT_EQ(gpu.memory_used_bytes, std::nullopt);
  EXPECT_EQ(gpu.utilization, std::nullopt);
  EXPECT_EQ(gpu.power_w, std::nullopt);
}

TEST(NodeFigures, AShareIsNamedAfterItsContainerOrOutsideKubernetesItsLease) {
  FiguresSources all = sources();
  EXPECT_EQ(figures_of(all).shares.at(0).container, "p.main.1234");
  BoundContainer bound;
  bound.lease = "p.main.1234";
  bound.pod_namespace = "default";
  bound.pod = "p";
  bound.container = "main";
  all.containers = {bound};
  const ShareFigures share = figures_of(all).shares.at(0);
  EXPECT_EQ(share.pod, "p");
  EXPECT_EQ(share.container, "main");
  EXPECT_EQ(share.throttled_s, 2.5);
  EXPECT_EQ(share.granted_byte_s, 4000);
  EXPECT_EQ(share.unused_byte_s, 3000);
  EXPECT_EQ(share.busy_s, 1.5);
  EXPECT_EQ(share.energy_j, 80);
  EXPECT_EQ(share.cores, 0.3);
}

TEST(NodeFigures, AnXidIsToldWithItsTimeOfDay) {
  FiguresSources all = sources();
  NodeHealth::State health;
  health.uuid = "GPU-a";
  health.state = inventory::HealthState::kUnhealthy;
  health.xids[79] = {3, 990 * kSecond};
  all.health = {health};
  const GpuFigures gpu = figures_of(all).gpus.at(0);
  EXPECT_EQ(gpu.health, inventory::HealthState::kUnhealthy);
  EXPECT_EQ(gpu.xids.at(79).count, 3u);
  EXPECT_EQ(gpu.xids.at(79).last_unix_s, 4990);
}

}  // namespace
}  // namespace aliquot::node
