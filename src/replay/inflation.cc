#include "replay/inflation.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "scheduler/fragmentation.h"
#include "scheduler/policies.h"
#include "scheduler/scheduler.h"

namespace aliquot::replay {
namespace {

using Engine = std::mt19937_64;

// Fisher-Yates with a plain remainder: the same on every standard library.
template <typename T>
void shuffle(std::vector<T>& items, Engine& engine) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[engine() % i]);
}

std::int64_t milli_of(const OpenbPod& pod) { return std::int64_t{pod.num_gpu} * pod.gpu_milli; }

std::int64_t capacity_of(const std::vector<model::NodeSpec>& nodes) {
  std::int64_t sum = 0;
  for (const model::NodeSpec& node : nodes) sum += std::int64_t{node.gpu_count} * 1000;
  return sum;
}

// Means of what is allocated, by the rounded percentage that has arrived.
class Columns {
 public:
  explicit Columns(std::int64_t capacity) : capacity_(capacity) {}

  void log(std::int64_t arrived, std::int64_t allocated) {
    const auto column = static_cast<std::size_t>((arrived * 200 + capacity_) / (2 * capacity_));
    if (column >= sum_.size()) return;
    sum_[column] += 100.0 * static_cast<double>(allocated) / static_cast<double>(capacity_);
    ++count_[column];
  }

  // A column that no pod ended in carries the one before on.
  std::array<double, kMostArrivedPercent + 1> means() const {
    std::array<double, kMostArrivedPercent + 1> means{};
    double last = 0;
    for (std::size_t i = 0; i < means.size(); ++i)
      means[i] = last = count_[i] > 0 ? sum_[i] / count_[i] : last;
    return means;
  }

 private:
  std::int64_t capacity_;
  std::array<double, kMostArrivedPercent + 1> sum_{};
  std::array<int, kMostArrivedPercent + 1> count_{};
};

double fragmented_percent(const scheduler::Snapshot& snapshot, const scheduler::Workload& workload,
                          std::int64_t capacity) {
  scheduler::Fragmentation measure(workload);
  double sum = 0;
  for (scheduler::NodeId node = 0; node < snapshot.size(); ++node) {
    const scheduler::NodeState state = snapshot.state(node);
    const scheduler::NodeShape& shape = snapshot.shape(state.shape);
    sum += static_cast<double>(measure.of(scheduler::share_state_of({shape, state}), shape));
  }
  return 100.0 * sum / static_cast<double>(measure.total()) / static_cast<double>(capacity);
}

}  // namespace

std::vector<const OpenbPod*> inflate(const std::vector<OpenbPod>& pods, std::int64_t capacity_milli,
                                     const InflationPlan& plan) {
  Engine engine(plan.seed);
  std::vector<const OpenbPod*> sorted;
  for (const OpenbPod& pod : pods) sorted.push_back(&pod);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OpenbPod* a, const OpenbPod* b) { return a->name < b->name; });
  std::vector<const OpenbPod*> arrivals = sorted;
  shuffle(arrivals, engine);
  std::int64_t sum = 0;
  for (const OpenbPod* pod : arrivals) sum += milli_of(*pod);
  const std::int64_t target = capacity_milli * plan.percent / 100;
  if (sum == 0) return arrivals;
  while (sum < target) {
    arrivals.push_back(sorted[engine() % sorted.size()]);
    sum += milli_of(*arrivals.back());
  }
  while (sum > target) {
    const std::size_t at = engine() % arrivals.size();
    if (sum - milli_of(*arrivals[at]) < target) break;
    sum -= milli_of(*arrivals[at]);
    arrivals.erase(arrivals.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return arrivals;
}

Result<InflationResult> run_inflation(const std::vector<model::NodeSpec>& listed,
                                      const std::vector<OpenbPod>& pods,
                                      const InflationPlan& plan) {
  std::vector<model::NodeSpec> nodes = listed;
  // Another stream than the arrivals', so that both orders see the same pods.
  Engine engine(plan.seed ^ 0x9e3779b97f4a7c15ULL);
  if (plan.order == NodeOrder::kPermuted) shuffle(nodes, engine);
  const std::int64_t capacity = capacity_of(nodes);
  if (capacity == 0) return Error{Errc::kInvalid, "inflation: the nodes have no GPU"};

  std::vector<scheduler::WorkShape> seen;
  for (const OpenbPod& pod : pods) seen.push_back(work_shape_of(pod));
  scheduler::PolicyInput input{
      scheduler::workload_of(seen), plan.seed, scheduler::capacity_of(nodes), plan.rollout, {}};
  auto policy = scheduler::make_policy(plan.policy, input);
  if (!policy) return policy.error();
  scheduler::Scheduler scheduler(std::move(nodes), *std::move(policy));

  InflationResult result;
  Columns columns(capacity);
  std::int64_t arrived = 0;
  std::int64_t allocated = 0;
  for (const OpenbPod* pod : inflate(pods, capacity, plan)) {
    const Result<scheduler::Decision> decision = scheduler.place(request_of(*pod));
    if (!decision) return decision.error();
    const bool placed = decision->outcome == scheduler::Outcome::kPlaced;
    arrived += milli_of(*pod);
    allocated += placed ? milli_of(*pod) : 0;
    ++result.arrived_pods;
    result.refused_pods += placed ? 0 : 1;
    result.arrived_8gpu += pod->num_gpu == 8 ? 1 : 0;
    result.placed_8gpu += placed && pod->num_gpu == 8 ? 1 : 0;
    columns.log(arrived, allocated);
  }
  result.allocated = columns.means();
  result.fragmented = fragmented_percent(scheduler.snapshot(), input.workload, capacity);
  return result;
}

}  // namespace aliquot::replay
