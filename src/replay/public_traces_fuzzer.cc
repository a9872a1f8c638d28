// Any text as each of the published traces: an error that names the place, or jobs that keep what
// trace.h promises. The first byte picks the reader.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "replay/public_traces.h"
#include "scheduler/demand.h"

namespace {

using namespace aliquot::replay;

void check(const aliquot::Result<Trace>& trace) {
  if (!trace) {
    if (!trace.error().message.starts_with("t:")) std::abort();
    return;
  }
  if (!std::ranges::is_sorted(trace->jobs, {}, &Job::arrival_s)) std::abort();
  for (const Job& job : trace->jobs) {
    if (job.duration_s < 1 || job.pods < 1 || job.arrival_s < 0) std::abort();
    if (job.work.used_milli < 0 || job.work.all_reduce_mb_s < 0) std::abort();
    if (!aliquot::scheduler::demand_of(job.request)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      check(parse_philly_trace(text, "t"));
      break;
    case 1:
      check(parse_pollux_trace(text, "t"));
      break;
    case 2:
      check(parse_online_trace(text, "t"));
      break;
    default:
      if (const auto nodes = parse_spot_nodes(text, "t"))
        for (const auto& node : *nodes)
          if (node.name.empty() || node.gpu_count < 0) std::abort();
  }
  return 0;
}
