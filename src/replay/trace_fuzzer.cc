// Whatever is written, the readers answer; what they accept keeps what trace.h and openb.h promise.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "replay/trace.h"
#include "scheduler/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace aliquot::replay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto trace = parse_trace(text, "t")) {
    if (!std::ranges::is_sorted(trace->jobs, {}, &Job::arrival_s)) std::abort();
    for (const Job& job : trace->jobs) {
      if (job.duration_s < 1 || job.request.name.empty()) std::abort();
      if (!aliquot::scheduler::demand_of(job.request)) std::abort();
      if (work_shape_of(job.request, {}).gpu_milli > 1000) std::abort();
    }
  } else if (!trace.error().message.starts_with("t:")) {
    std::abort();
  }
  if (const auto pods = parse_openb_pods(text, "p"))
    for (const OpenbPod& pod : *pods)
      if (pod.deleted_s < pod.created_s) std::abort();
  if (const auto nodes = parse_openb_nodes(text, "n"))
    for (const auto& node : *nodes)
      if (node.name.empty() || node.gpu_count < 0) std::abort();
  return 0;
}
