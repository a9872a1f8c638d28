// Whether set C is better than D does not depend on what is free, except for objective 4, which
// depends on free - C alone. So each set gets two dense ranks once, one for the objectives before
// the fourth and one for those after it, and each remainder one; a candidate is then compared by
// one 64-bit number.

#include "topology/best_table.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace aliquot::topology {
namespace {

// The place of each set among the values that occur, the least being 0.
template <typename Value>
std::vector<std::uint64_t> dense_ranks(std::uint32_t sets, Value&& value) {
  std::vector<std::uint32_t> order(sets);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return value(a) < value(b); });
  std::vector<std::uint64_t> ranks(sets);
  std::uint64_t rank = 0;
  for (std::uint32_t i = 0; i < sets; ++i) {
    if (i > 0 && value(order[i - 1]) < value(order[i])) ++rank;
    ranks[order[i]] = rank;
  }
  return ranks;
}

std::uint32_t reversed(std::uint32_t bits) {
  std::uint32_t back = 0;
  for (unsigned i = 0; i < 32; ++i) back |= (bits >> i & 1) << (31 - i);
  return back;
}

// 16 GPUs have 2^16 sets, so a rank has at most 16 bits.
constexpr unsigned kRankBits = 16;

}  // namespace

BestTable::BestTable(Shape shape) : shape_(std::move(shape)) {
  const unsigned n = shape_.size();
  const std::uint32_t sets = 1u << n;
  const auto set = [](std::uint32_t bits) { return GpuSet::from_bits(bits); };
  const auto speed = dense_ranks(sets, [&](std::uint32_t bits) {
    return std::pair(shape_.ring_mb_s(set(bits)), shape_.pairs_mb_s(set(bits)));
  });
  const auto whole = dense_ranks(sets, [&](std::uint32_t b) { return shape_.whole(set(b)); });
  // Lowest indices first is the greater reversed number, among sets of one size.
  const auto ties = dense_ranks(sets, [&](std::uint32_t bits) {
    return std::pair(~shape_.latency_ns(set(bits)), reversed(bits));
  });

  std::vector<std::uint64_t> own(sets);
  std::vector<std::uint64_t> left(sets);
  std::vector<std::uint8_t> size(sets);
  for (std::uint32_t bits = 0; bits < sets; ++bits) {
    own[bits] = speed[bits] << 2 * kRankBits | ties[bits];
    left[bits] = whole[bits] << kRankBits;
    size[bits] = static_cast<std::uint8_t>(set(bits).size());
  }

  best_.assign(std::size_t{sets} * (n + 1), 0);
  for (std::uint32_t free = 1; free < sets; ++free) {
    std::uint16_t* row = &best_[std::size_t{free} * (n + 1)];
    std::array<std::uint64_t, Shape::kMostGpus + 1> greatest{};
    for (std::uint32_t bits = free; bits != 0; bits = (bits - 1) & free) {
      const std::uint64_t value = own[bits] + left[free ^ bits];
      const unsigned count = size[bits];
      // The first candidate of a count may have the value 0.
      if (value < greatest[count] || (value == greatest[count] && row[count] != 0)) continue;
      greatest[count] = value;
      row[count] = static_cast<std::uint16_t>(bits);
    }
  }
}

Result<GpuSet> BestTable::best(const Request& request) const {
  const bool plain = request.include.empty() && request.exclude.empty() && !request.one_numa_node &&
                     !request.one_clique && !request.near_nics && !request.near_numa &&
                     shape_.all().contains(request.free);
  if (plain) {
    const GpuSet found = best(request.free, request.count);
    if (!found.empty()) return found;
  }
  return best_set(shape_, request);
}

Result<std::shared_ptr<const BestTable>> ShapeTables::table_for(const model::NodeTopology& node) {
  std::string key = shape_key(node);
  if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
  Result<Shape> shape = Shape::of(node);
  if (!shape) return shape.error();
  auto table = std::make_shared<const BestTable>(*std::move(shape));
  tables_.emplace(std::move(key), table);
  return table;
}

}  // namespace aliquot::topology
