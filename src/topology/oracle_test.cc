// The search against enumeration (up to 8 GPUs) and against another dynamic programme (9 to 16).
#include "support/topology_oracle_runs.h"

namespace aliquot::topology::oracle {
namespace {

TEST(Search, EqualsEnumerationOnTenThousandGraphs) {
  constexpr std::uint64_t kSeed = 20250301;
  std::mt19937_64 random(kSeed);
  for (unsigned i = 0; i < 10'000 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", graph " << i);
    const unsigned gpus = 1 + static_cast<unsigned>(random() % 8);
    compare_on(random, gpus, /*table=*/true, best_by_orders);
  }
}

TEST(Search, EqualsASubsetProgrammeOnTwoHundredLargeGraphs) { compare_subsets(200, 7); }

TEST(Shape, FindsTheRingThatItPromises) {
  std::mt19937_64 random(3);
  for (unsigned i = 0; i < 50; ++i) {
    const NodeTopology node = test::random_topology(random, 8, 6);
    const Shape shape = *Shape::of(node);
    for (std::uint32_t bits = 1; bits < 256; ++bits) {
      const GpuSet set = GpuSet::from_bits(bits);
      const std::vector<unsigned> ring = shape.best_ring(set);
      ASSERT_EQ(ring.size(), set.size());
      GpuSet visited;
      std::uint32_t slowest = set.size() < 2 ? 0 : ~0u;
      for (std::size_t at = 0; at < ring.size(); ++at) {
        visited.insert(ring[at]);
        if (ring.size() > 1)
          slowest =
              std::min(slowest, node.link(ring[at], ring[(at + 1) % ring.size()]).bandwidth_mb_s);
      }
      ASSERT_EQ(visited, set);
      ASSERT_EQ(slowest, shape.ring_mb_s(set));
    }
  }
}

}  // namespace
}  // namespace aliquot::topology::oracle
