// Random graphs and requests, the search against an oracle. Shared by the short and the long test.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "support/topologies.h"
#include "support/topology_oracle.h"
#include "topology/best_table.h"

namespace aliquot::topology::oracle {

inline GpuSet random_subset(std::mt19937_64& random, GpuSet of) {
  return GpuSet::from_bits(static_cast<std::uint32_t>(random()) & of.bits());
}

// Half of them without constraints, so that tables are asked too.
inline Request random_request(std::mt19937_64& random, unsigned gpus) {
  Request request;
  request.free =
      random_subset(random, GpuSet::first(gpus)) | random_subset(random, GpuSet::first(gpus));
  if (request.free.empty()) request.free.insert(0);
  request.count = 1 + static_cast<unsigned>(random() % request.free.size());
  if (random() % 2 == 0) return request;
  if (random() % 2 == 0) request.include.insert(request.free.lowest());
  if (random() % 2 == 0) request.exclude = random_subset(random, request.free) - request.include;
  request.one_clique = random() % 4 == 0;
  request.one_numa_node = random() % 4 == 0;
  request.near_nics = random() % 2 == 0;
  request.near_numa = random() % 2 == 0;
  return request;
}

// `best` is one of the oracles above. With `table` the search is asked through a BestTable.
template <typename BestBy>
void compare_on(std::mt19937_64& random, unsigned gpus, bool table, BestBy&& best_by) {
  const NodeTopology node =
      test::random_topology(random, gpus, 1 + static_cast<unsigned>(random() % 12));
  const Request request = random_request(random, gpus);
  SCOPED_TRACE(testing::Message() << gpus << " GPUs, " << request.count << " of "
                                  << gpu_set_text(request.free));
  Result<Shape> shape = Shape::of(node);
  ASSERT_TRUE(shape) << shape.error().message;
  const Result<GpuSet> found = table ? BestTable(*shape).best(request) : best_set(*shape, request);
  const std::optional<Best> best = best_by(node, request);
  ASSERT_EQ(found.has_value(), best.has_value());
  if (!best) return;
  EXPECT_EQ(*found, best->set) << gpu_set_text(*found) << " " << gpu_set_text(best->set);
  EXPECT_TRUE(rating_of(*shape, request, *found) == best->rating);
}

inline void compare_subsets(unsigned graphs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < graphs && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", graph " << i);
    const unsigned gpus = 9 + static_cast<unsigned>(random() % 8);
    compare_on(random, gpus, /*table=*/gpus <= 11, best_by_subsets);
  }
}

}  // namespace aliquot::topology::oracle
