// What a probe process and the daemon say to each other: lines of JSON through a pipe.
//
//   daemon -> probe  one byte, a question
//   probe -> daemon  {"reading": {...}} or {"held": {...}} to each, {"error": "..."} with it or
//                    instead; {"xid": 79} when there was one; {"use": [...]} when somebody used it
//
// A reading is the GPU's changing state and what its health is judged by: some thirty questions to
// NVML. What is held, which is wanted every second, is four. Pure; any thread.
// docs/formats/node_state.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "inventory/health.h"
#include "inventory/nvml.h"

namespace aliquot::node {

struct GpuReading {
  inventory::NvmlState state;
  inventory::HealthReading health;
};

inline constexpr char kAskReading = '?';
inline constexpr char kAskHeld = 'm';

struct ProbeLine {
  std::optional<GpuReading> reading;
  std::optional<inventory::NvmlHeld> held;
  std::optional<unsigned> xid;
  std::vector<inventory::NvmlUse> use;  // samples not told before
  std::string error;                    // the driver's words; the GPU did not answer
};

// Without the line's end.
std::string probe_line_text(const ProbeLine& line);
Result<ProbeLine> parse_probe_line(std::string_view text);

}  // namespace aliquot::node
