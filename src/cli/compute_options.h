// The words that say how a GPU's time is shared: --cores, --weight, --class, --priority, --cap,
// policies and what becomes of work that passes the gate by. Pure; any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broker/requests.h"
#include "common/result.h"

namespace aliquot::cli {

// As given; what is absent is not to be changed.
struct ComputeOptions {
  std::optional<std::string> cores = {};  // "30", "12.5%"; "none": no guarantee
  std::optional<std::uint32_t> weight = {}, priority = {};
  std::optional<std::string> share_class = {};  // "online", "offline"
  std::optional<bool> cap = {};
};

// Adds the options to `command`; the values are there when its callback runs.
std::shared_ptr<ComputeOptions> add_compute_options(CLI::App& command);

// `lease` and `gpu` stay empty. A word that cannot be meant is an error that names it.
Result<broker::ComputeChange> change_of(const ComputeOptions& options);

// cGPU's numbers 0 to 5, our names, qGPU's names (fixed-share, burst-share, best-effort; fs, bs,
// be).
Result<wire::Policy> parse_policy(std::string_view text);
std::string_view policy_text(wire::Policy policy);

std::string_view class_text(wire::ShareClass share_class);

Result<broker::OnBypass> parse_on_bypass(std::string_view text);
std::string_view on_bypass_text(broker::OnBypass action);

// Percent that guarantees may sum up to, "100" to "1000"; in 1/100 %.
Result<std::uint32_t> parse_overcommit(std::string_view text);

// "100ms", "2s", "250us"; nanoseconds.
Result<std::uint64_t> parse_time(std::string_view text);
// For people: "0", "250us", "15ms", "1.2s", "310s", "12h".
std::string time_text(std::uint64_t ns);

}  // namespace aliquot::cli
