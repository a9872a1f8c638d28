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

}  // namespace aliquot::scheduler
