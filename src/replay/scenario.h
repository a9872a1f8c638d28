// Scenarios: a small cluster with tiers and what happens in it, run through the planner in virtual
// time (simulated). The file is docs/formats/scenario.md.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "scheduler/planner.h"

namespace aliquot::replay {

struct ScenarioEvent {
  Nanoseconds at = 0;
  std::vector<scheduler::Job> submit;  // at most one
  scheduler::JobId finish = 0;         // 0: none ends
};

struct Scenario {
  std::string about;
  std::vector<model::NodeSpec> nodes;
  std::vector<ScenarioEvent> events;
  std::vector<std::string> expect;
};

// `where` stands in errors.
Result<Scenario> parse_scenario(std::string_view text, std::string_view where);

// Every action in order: "60 s: stop maps for perception".
Result<std::vector<std::string>> run_scenario(const Scenario& scenario);

// Error: the first action that differs from what the scenario expects.
Status check_scenario(const Scenario& scenario);

}  // namespace aliquot::replay
