#include "replay/scenario.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/fields.h"
#include "scheduler/policies.h"

namespace aliquot::replay {
namespace {

using format::Fields;
using format::Json;
using scheduler::Action;
using scheduler::ActionKind;
using scheduler::JobId;

constexpr model::Bytes kMiB = model::Bytes{1} << 20;
constexpr const char* kQueue = "all";

Result<model::NodeSpec> read_node(const Json& json, const std::string& where) {
  model::NodeSpec node;
  node.cpu_milli = 64'000;
  node.memory_bytes = model::Bytes{1} << 38;
  std::string tier;
  std::int64_t memory_mib = 0;
  Fields fields(json, where);
  fields.required("name", node.name).required("tier", tier).required("gpus", node.gpu_count);
  fields.optional("latency_us", node.latency_us).optional("owner", node.owner);
  fields.optional("model", node.gpu.name).optional("memory_mib", memory_mib);
  if (tier == "device")
    node.tier = model::Tier::kDevice;
  else if (tier == "edge")
    node.tier = model::Tier::kEdge;
  else if (tier != "cloud")
    fields.reject("tier", "is cloud, edge or device");
  if (node.gpu_count < 0 || node.gpu_count > model::kMaxGpusPerNode)
    fields.reject("gpus", "is 0 to 16");
  if (memory_mib < 0 || memory_mib > (1 << 30)) fields.reject("memory_mib", "is 0 to 2^30");
  if (Status ok = fields.done(); !ok) return ok.error();
  node.gpu.memory_bytes = memory_mib * kMiB;
  return node;
}

Result<scheduler::Job> read_job(const Json& json, const std::string& where) {
  scheduler::Job job;
  model::GpuAsk ask;
  int gpus = 0;
  int cores = 0;
  std::int64_t memory_mib = 0;
  model::Request request;
  Fields fields(json, where);
  fields.required("id", job.id).required("name", job.gang.name);
  fields.optional("gpus", gpus).optional("cores", cores).optional("memory_mib", memory_mib);
  fields.optional("max_latency_us", request.max_latency_us).optional("tenant", job.tenant);
  fields.optional("priority", job.priority).optional("preemptible", job.preemptible);
  if ((gpus > 0) == (cores > 0 || memory_mib > 0))
    fields.reject("gpus", "or a share by cores and memory_mib: exactly one of them");
  if (cores < 0 || cores > 100) fields.reject("cores", "is 0 to 100 percent");
  if (memory_mib < 0 || memory_mib > (1 << 30)) fields.reject("memory_mib", "is 0 to 2^30");
  if (Status ok = fields.done(); !ok) return ok.error();
  if (gpus > 0)
    ask = {model::GpuKind::kWhole, gpus, 0, 0, 0, {}};
  else
    ask = {model::GpuKind::kShare, 1, cores * 10, memory_mib * kMiB, 0, {}};
  request.tenant = job.tenant;
  request.containers = {{"main", 1'000, model::Bytes{1} << 30, ask}};
  job.queue = kQueue;
  job.gang.members = {{std::move(request), 1}};
  return job;
}

Result<ScenarioEvent> read_event(const Json& json, const std::string& where) {
  ScenarioEvent event;
  std::int64_t at_s = 0;
  Json submit;
  Fields fields(json, where);
  fields.required("at_s", at_s).optional("submit", submit).optional("finish", event.finish);
  if (submit.is_null() == (event.finish == 0))
    fields.reject("at_s", "has exactly one of submit and finish beside it");
  if (at_s < 0 || at_s > 1'000'000'000) fields.reject("at_s", "is 0 to 10^9");
  if (Status ok = fields.done(); !ok) return ok.error();
  event.at = at_s * kSecond;
  if (submit.is_null()) return event;
  Result<scheduler::Job> job = read_job(submit, where + ".submit");
  if (!job) return job.error();
  event.submit.push_back(*std::move(job));
  return event;
}

std::string text_of(const Action& action, const Scenario& scenario,
                    const std::map<JobId, std::string>& names) {
  const std::string& name = names.at(action.job);
  if (action.kind == ActionKind::kStop) return "stop " + name + " for " + names.at(action.for_job);
  const auto node = static_cast<std::size_t>(action.placements.front().node);
  const bool start = action.kind == ActionKind::kStart;
  return (start ? "start " : "move ") + name + (start ? " on " : " to ") +
         scenario.nodes[node].name;
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view where) {
  const Result<Json> json = format::parse_json(text, where);
  if (!json) return json.error();
  Scenario scenario;
  std::vector<Json> nodes;
  std::vector<Json> events;
  Fields fields(*json, std::string(where));
  fields.optional("about", scenario.about).required("nodes", nodes).required("events", events);
  if (Status ok = fields.optional("expect", scenario.expect).done(); !ok) return ok.error();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto node = read_node(nodes[i], fields.place("nodes[" + std::to_string(i) + "]"));
    if (!node) return node.error();
    scenario.nodes.push_back(*std::move(node));
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::string place = fields.place("events[" + std::to_string(i) + "]");
    auto event = read_event(events[i], place);
    if (!event) return event.error();
    if (!scenario.events.empty() && event->at < scenario.events.back().at)
      return Error{Errc::kInvalid, place + ": before the event above it"};
    scenario.events.push_back(*std::move(event));
  }
  return scenario;
}

Result<std::vector<std::string>> run_scenario(const Scenario& scenario) {
  auto policy = scheduler::make_policy("spread", {});
  if (!policy) return policy.error();
  scheduler::Scheduler scheduler(scenario.nodes, *std::move(policy));
  scheduler::QueueSpec queue;
  queue.name = kQueue;
  auto planner = scheduler::Planner::create(scheduler, {queue}, {});
  if (!planner) return planner.error();
  std::map<JobId, std::string> names;
  std::vector<std::string> lines;
  for (const ScenarioEvent& event : scenario.events) {
    for (const scheduler::Job& job : event.submit) {
      names[job.id] = job.gang.name;
      if (Status ok = planner->submit(job, event.at); !ok) return ok.error();
    }
    if (event.finish != 0)
      if (Status ok = planner->finish(event.finish); !ok) return ok.error();
    for (const Action& action : planner->step(event.at))
      lines.push_back(std::to_string(event.at / kSecond) +
                      " s: " + text_of(action, scenario, names));
  }
  return lines;
}

static Error other_than_expected(std::size_t action, const std::string& got,
                                 const std::string& wanted) {
  return {Errc::kInvalid, "scenario: action " + std::to_string(action) + " is '" + got +
                              "', expected '" + wanted + "'"};
}

Status check_scenario(const Scenario& scenario) {
  const auto lines = run_scenario(scenario);
  if (!lines) return lines.error();
  const std::size_t most = std::max(lines->size(), scenario.expect.size());
  for (std::size_t i = 0; i < most; ++i) {
    const std::string got = i < lines->size() ? (*lines)[i] : "nothing more";
    const std::string wanted = i < scenario.expect.size() ? scenario.expect[i] : "nothing more";
    if (got != wanted) return other_than_expected(i + 1, got, wanted);
  }
  return {};
}

}  // namespace aliquot::replay
