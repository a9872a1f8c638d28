#include "replay/node_links.h"

#include <utility>

namespace aliquot::replay {

using model::GpuSet;
using topology::Traffic;

Result<NodeLinks> NodeLinks::of(const model::NodeTopology& node) {
  Result<topology::Shape> shape = topology::Shape::of(node);
  if (!shape) return shape.error();
  return NodeLinks(node, *std::move(shape));
}

NodeLinks::NodeLinks(const model::NodeTopology& node, topology::Shape shape)
    : shape_(std::move(shape)), fabric_(node), rails_(node) {
  for (unsigned a = 0; a < shape_.size(); ++a)
    for (unsigned b = 0; b < a; ++b)
      all_equal_ = all_equal_ && shape_.pair(a, b).mb_s == shape_.pair(0, 1).mb_s;
}

const Traffic& NodeLinks::ring(GpuSet set) {
  const auto [found, is_new] = rings_.try_emplace(set.bits());
  if (is_new && set.size() > 1) found->second = fabric_.ring(shape_.best_ring(set));
  return found->second;
}

}  // namespace aliquot::replay
