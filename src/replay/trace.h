// A trace: jobs that arrive, ask for something and run for a while. Reads ours
// (docs/formats/trace.md) and the openb pod lists that carry times, told apart by the header.
//
// Leaves to others: what becomes of the jobs (timeline.h). A file with an error in it gives
// nothing; errors name file, line and column. Pure but for read_trace; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/cluster.h"
#include "model/request.h"
#include "replay/openb.h"
#include "scheduler/workload.h"

namespace aliquot::replay {

struct Job {
  model::Request request;
  std::int64_t arrival_s = 0;
  std::int64_t duration_s = 1;  // from its start, however late that is
};

struct Trace {
  std::string name;
  std::vector<Job> jobs;  // by arrival; of the same second, as listed
};

// `name` stands in errors.
Result<Trace> parse_trace(std::string_view text, std::string_view name);
// Invalid for the lists without times (multigpu*): the message says what they are for.
Result<Trace> read_trace(const std::filesystem::path& path);

// The same jobs arriving `times` as densely (at least 1), for a cluster that the trace would leave
// idle; how long they run stays.
Trace condensed(Trace trace, std::int64_t times);

// The shape by which fragmentation and roll-out count a job. A share of memory is taken as the part
// it is of the largest GPU that the job may have in `nodes`.
scheduler::WorkShape work_shape_of(const model::Request& request,
                                   const std::vector<model::NodeSpec>& nodes);

}  // namespace aliquot::replay
