// The best set for every set of free GPUs and every count, computed once for a shape.
//
// It answers requests without constraints and preferences exactly as search.h does; all others go
// there. A value, not changed after it was made: any thread may read it. ShapeTables: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "topology/search.h"
#include "topology/shape.h"

namespace aliquot::topology {

class BestTable {
 public:
  // 3^n comparisons: 43 million for 16 GPUs.
  explicit BestTable(Shape shape);

  const Shape& shape() const { return shape_; }

  // The empty set where `count` is 0 or more than are free.
  GpuSet best(GpuSet free, unsigned count) const {
    if (count > shape_.size()) return {};
    return GpuSet::from_bits(best_[free.bits() * (shape_.size() + 1) + count]);
  }

  // From the table where it can, else by search.
  Result<GpuSet> best(const Request& request) const;

 private:
  Shape shape_;
  std::vector<std::uint16_t> best_;  // [free][count]
};

// The tables of all shapes seen, so that a thousand equal nodes cost one.
class ShapeTables {
 public:
  // Shared, because nodes come and go in any order and the last one ends the table.
  Result<std::shared_ptr<const BestTable>> table_for(const model::NodeTopology& node);
  std::size_t size() const { return tables_.size(); }

 private:
  std::unordered_map<std::string, std::shared_ptr<const BestTable>> tables_;
};

}  // namespace aliquot::topology
