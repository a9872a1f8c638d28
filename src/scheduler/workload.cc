#include "scheduler/workload.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace aliquot::scheduler {

Workload workload_of(const std::vector<WorkShape>& seen, int percent) {
  std::map<std::tuple<std::int64_t, int, int, std::vector<std::string>>, std::int64_t> counts;
  std::int64_t all = 0;
  for (const WorkShape& s : seen) {
    counts[{s.cpu_milli, s.gpu_milli, s.gpus, s.models}] += s.count;
    all += s.count;
  }
  std::vector<WorkShape> shapes;
  for (const auto& [key, count] : counts)
    shapes.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), count});
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const WorkShape& a, const WorkShape& b) { return a.count > b.count; });
  Workload workload;
  for (WorkShape& shape : shapes) {
    if (workload.total * 100 >= all * percent) break;
    workload.total += shape.count;
    workload.shapes.push_back(std::move(shape));
  }
  return workload;
}

std::vector<ModelCapacity> capacity_of(const std::vector<model::NodeSpec>& nodes) {
  std::map<std::string, std::int64_t> sums;
  for (const model::NodeSpec& node : nodes)
    if (node.gpu_count > 0) sums[node.gpu.name] += std::int64_t{node.gpu_count} * 1000;
  std::vector<ModelCapacity> capacity;
  for (const auto& [name, milli] : sums) capacity.push_back({name, milli});
  return capacity;
}

std::vector<int> named_load(const Workload& workload, const std::vector<ModelCapacity>& capacity) {
  std::int64_t all_demand = 0;
  std::int64_t all_capacity = 0;
  for (const WorkShape& s : workload.shapes) all_demand += s.count * s.gpus * s.gpu_milli;
  for (const ModelCapacity& c : capacity) all_capacity += c.gpu_milli;
  std::vector<double> load(capacity.size());
  for (const WorkShape& s : workload.shapes) {
    const auto named = [&](const ModelCapacity& c) {
      return std::find(s.models.begin(), s.models.end(), c.model) != s.models.end();
    };
    std::int64_t among = 0;
    for (const ModelCapacity& c : capacity) among += named(c) ? c.gpu_milli : 0;
    if (among == 0) continue;  // names none, or none that there is
    // Spread by capacity, so every model named is loaded alike.
    const auto demand = static_cast<double>(s.count * s.gpus * s.gpu_milli);
    for (std::size_t i = 0; i < capacity.size(); ++i)
      if (named(capacity[i])) load[i] += demand / static_cast<double>(among);
  }
  std::vector<int> parts;
  for (const double l : load)
    parts.push_back(static_cast<int>(1000.0 * l * static_cast<double>(all_capacity) /
                                     static_cast<double>(std::max<std::int64_t>(1, all_demand))));
  return parts;
}

}  // namespace aliquot::scheduler
