#include "cli/compute_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "model/quantity.h"

namespace aliquot::cli {
namespace {

template <typename Value>
struct Word {
  std::string_view text;
  Value value;
};

// The first word of a value is the one that is shown.
constexpr std::array kPolicies{
    Word{"fair", wire::Policy::kFair},
    Word{"preemptive", wire::Policy::kPreemptive},
    Word{"weighted", wire::Policy::kWeighted},
    Word{"fixed", wire::Policy::kFixed},
    Word{"soft", wire::Policy::kSoft},
    Word{"native", wire::Policy::kNative},
    Word{"burst", wire::Policy::kBurst},
    Word{"best-effort", wire::Policy::kBestEffort},
    Word{"0", wire::Policy::kFair},
    Word{"1", wire::Policy::kPreemptive},
    Word{"2", wire::Policy::kWeighted},
    Word{"3", wire::Policy::kFixed},
    Word{"4", wire::Policy::kSoft},
    Word{"5", wire::Policy::kNative},
    Word{"fixed-share", wire::Policy::kFixed},
    Word{"fs", wire::Policy::kFixed},
    Word{"burst-share", wire::Policy::kBurst},
    Word{"bs", wire::Policy::kBurst},
    Word{"be", wire::Policy::kBestEffort},
};
constexpr std::array kClasses{
    Word{"offline", wire::ShareClass::kOffline},
    Word{"online", wire::ShareClass::kOnline},
};
constexpr std::array kActions{
    Word{"report", broker::OnBypass::kReport},
    Word{"ban", broker::OnBypass::kBan},
    Word{"stop", broker::OnBypass::kStop},
    Word{"end", broker::OnBypass::kEnd},
};

template <typename Words>
auto value_of(const Words& words, std::string_view text, std::string_view what)
    -> Result<decltype(words[0].value)> {
  std::string known;
  for (const auto& word : words) {
    if (word.text == text) return word.value;
    known += (known.empty() ? "" : ", ") + std::string(word.text);
  }
  return Error{Errc::kInvalid, fmt::format("{} \"{}\": write one of {}", what, text, known)};
}

template <typename Words, typename Value>
std::string_view text_of(const Words& words, Value value) {
  for (const auto& word : words)
    if (word.value == value) return word.text;
  return "unknown";
}

struct Unit {
  std::string_view name;
  std::uint64_t ns;
};
constexpr std::array kUnits{Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000},
                            Unit{"s", 1'000'000'000}};

}  // namespace

std::shared_ptr<ComputeOptions> add_compute_options(CLI::App& command) {
  auto options = std::make_shared<ComputeOptions>();
  command.add_option("--cores", options->cores, "Part of each GPU's time (30, 12.5%)")
      ->type_name("PERCENT");
  command.add_option("--weight", options->weight, "Weight among those without cores (1)")
      ->type_name("N");
  command.add_option("--class", options->share_class, "online takes the GPU when it needs it")
      ->type_name("online|offline");
  command.add_option("--priority", options->priority, "Who goes first when several are due (0)")
      ->type_name("N");
  command.add_flag("--cap,!--no-cap", options->cap, "Never more than the cores, whatever is idle")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  return options;
}

Result<broker::ComputeChange> change_of(const ComputeOptions& options) {
  broker::ComputeChange change;
  if (options.cores) {
    const auto cores =
        *options.cores == "none" ? Result<std::uint32_t>(0u) : model::parse_cores(*options.cores);
    if (!cores) return cores.error();
    change.cores = *cores;
  }
  if (options.share_class) {
    const auto share_class = value_of(kClasses, *options.share_class, "class");
    if (!share_class) return share_class.error();
    change.share_class = *share_class;
  }
  change.weight = options.weight;
  change.priority = options.priority;
  change.capped = options.cap;
  return change;
}

Result<wire::Policy> parse_policy(std::string_view text) {
  return value_of(kPolicies, text, "policy");
}
std::string_view policy_text(wire::Policy policy) { return text_of(kPolicies, policy); }

std::string_view class_text(wire::ShareClass share_class) { return text_of(kClasses, share_class); }

Result<broker::OnBypass> parse_on_bypass(std::string_view text) {
  return value_of(kActions, text, "on-bypass");
}
std::string_view on_bypass_text(broker::OnBypass action) { return text_of(kActions, action); }

Result<std::uint32_t> parse_overcommit(std::string_view text) {
  std::uint32_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error == std::errc() && (rest.empty() || rest == "%") && percent >= 100 && percent <= 1000)
    return percent * 100;
  return Error{Errc::kInvalid,
               fmt::format("overcommit \"{}\": give a percentage from 100 to 1000", text)};
}

Result<std::uint64_t> parse_time(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& known : kUnits)
    if (error == std::errc() && unit == known.name && number >= 0 && number < 1e6)
      return static_cast<std::uint64_t>(std::llround(number * static_cast<double>(known.ns)));
  return Error{Errc::kInvalid,
               fmt::format("time \"{}\": write a number and a unit (100ms, 2s)", text)};
}

std::string time_text(std::uint64_t ns) {
  constexpr std::uint64_t kHour = 3600ull * 1'000'000'000;
  if (ns == 0) return "0";
  if (ns >= 10 * kHour) return fmt::format("{}h", ns / kHour);
  const auto value = static_cast<double>(ns);
  if (ns >= 100'000'000'000) return fmt::format("{:.0f}s", value / 1e9);
  if (ns >= 1'000'000'000) return fmt::format("{:.1f}s", value / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.0f}ms", value / 1e6);
  return fmt::format("{:.0f}us", value / 1e3);
}

}  // namespace aliquot::cli
