// A trace: jobs that arrive, ask for something and run for a while. Reads ours
// (docs/formats/trace.md), the openb pod lists that carry times, and those of public_traces.h, told
// apart by their first line.
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

// What a job does with what it holds, as far as the trace tells. Zero: it does not.
struct Work {
  int used_milli = 0;                // of each GPU while it runs alone; 0: all that it asks
  std::int64_t all_reduce_mb_s = 0;  // 10^6 bytes summed up over all its GPUs a second of compute
  std::int64_t read_mb_s = 0;        // that each GPU takes in from its host a second of compute
  std::string gpu_model;             // the GPU whose time duration_s is; empty: whichever it gets
  bool operator==(const Work&) const = default;
};

struct Job {
  model::Request request;  // of one pod
  std::int64_t arrival_s = 0;
  std::int64_t duration_s = 1;  // from its start, however late that is
  int pods = 1;                 // equal ones, placed together or not at all
  Work work{};

  int gpus_per_pod() const;
  int gpus() const { return pods * gpus_per_pod(); }
};

struct Trace {
  std::string name;
  std::vector<Job> jobs;                   // by arrival; of the same second, as listed
  std::vector<std::string> assumptions{};  // a sentence each: what the trace does not tell
};

inline constexpr int kMostGpusPerJob = 65'536;
inline constexpr int kMostGpusPerPod = 8;  // where a trace tells only a number of GPUs

// Into how many equal pods `gpus` GPUs are cut, so that each has as many as can be but at most
// `most_per_pod`.
int pods_of(int gpus, int most_per_pod);

// A pod of whole GPUs, or of none, with so much CPU for each GPU.
model::Request whole_gpu_request(std::string name, int gpus, std::int64_t cpu_milli_per_gpu);

void sort_by_arrival(Trace& trace);

// Cuts jobs of whole GPUs into smaller pods where no node has as many as one pod asks.
Trace cut_to_nodes(Trace trace, const std::vector<model::NodeSpec>& nodes);

class CsvReader;
// Invalid unless the field is 1 to 253 printable characters.
Status check_job_name(const CsvReader& csv, std::size_t column);

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
