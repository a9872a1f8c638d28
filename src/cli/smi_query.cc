// The fields of `aliquot smi --query-gpu`, by nvidia-smi's names: one row each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/smi_view.h"

namespace aliquot::cli {
namespace {

struct Field {
  std::string_view name;
  std::string_view unit;                                   // empty: none
  std::string (*value)(const SmiMachine&, const SmiGpu&);  // empty answer: the GPU has none
};

template <typename Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string mib(const SmiGpu& gpu, std::uint64_t bytes) {
  return gpu.trouble.empty() ? std::to_string(bytes >> 20) : "";
}

std::string watts(const std::optional<unsigned>& milliwatts) {
  return milliwatts ? fmt::format("{:.2f}", *milliwatts / 1000.0) : "";
}

std::string on_off(const std::optional<bool>& value) {
  return value ? (*value ? "Enabled" : "Disabled") : "";
}

std::string compute_mode(unsigned mode) {
  constexpr std::array<std::string_view, 4> kNames{"Default", "Exclusive_Thread", "Prohibited",
                                                   "Exclusive_Process"};
  return std::string(mode < kNames.size() ? kNames[mode] : "Unknown");
}

using Machine = SmiMachine;
using Gpu = SmiGpu;

// Sorted by name.
constexpr std::array kFields{
    Field{"clocks.mem", "MHz",
          [](const Machine&, const Gpu& g) { return text_of(g.state.memory_mhz); }},
    Field{"clocks.sm", "MHz", [](const Machine&, const Gpu& g) { return text_of(g.state.sm_mhz); }},
    Field{"compute_cap", "",
          [](const Machine&, const Gpu& g) {
            return fmt::format("{}.{}", g.gpu.compute_major, g.gpu.compute_minor);
          }},
    Field{"compute_mode", "",
          [](const Machine&, const Gpu& g) { return compute_mode(g.state.compute_mode); }},
    Field{"count", "", [](const Machine& m, const Gpu&) { return std::to_string(m.gpus.size()); }},
    Field{"driver_version", "",
          [](const Machine& m, const Gpu&) { return m.system.driver_version; }},
    Field{"ecc.errors.uncorrected.volatile.total", "",
          [](const Machine&, const Gpu& g) { return text_of(g.state.ecc_uncorrected); }},
    Field{"ecc.mode.current", "", [](const Machine&, const Gpu& g) { return on_off(g.state.ecc); }},
    Field{"fan.speed", "%",
          [](const Machine&, const Gpu& g) { return text_of(g.state.fan_percent); }},
    Field{"gpu_bus_id", "", [](const Machine&, const Gpu& g) { return g.gpu.bus_id; }},
    Field{"gpu_name", "", [](const Machine&, const Gpu& g) { return g.gpu.name; }},
    Field{"gpu_serial", "", [](const Machine&, const Gpu& g) { return g.gpu.serial; }},
    Field{"gpu_uuid", "", [](const Machine&, const Gpu& g) { return g.gpu.uuid; }},
    Field{"index", "", [](const Machine&, const Gpu& g) { return std::to_string(g.index); }},
    Field{"memory.free", "MiB",
          [](const Machine&, const Gpu& g) { return mib(g, g.state.memory.free_bytes); }},
    Field{"memory.reserved", "MiB",
          [](const Machine&, const Gpu& g) { return mib(g, g.state.memory.reserved_bytes); }},
    Field{"memory.total", "MiB",
          [](const Machine&, const Gpu& g) { return mib(g, g.state.memory.total_bytes); }},
    Field{"memory.used", "MiB",
          [](const Machine&, const Gpu& g) { return mib(g, g.state.memory.used_bytes); }},
    Field{"mig.mode.current", "", [](const Machine&, const Gpu& g) { return on_off(g.state.mig); }},
    Field{"name", "", [](const Machine&, const Gpu& g) { return g.gpu.name; }},
    Field{"pci.bus_id", "", [](const Machine&, const Gpu& g) { return g.gpu.bus_id; }},
    Field{"pcie.link.gen.current", "",
          [](const Machine&, const Gpu& g) { return text_of(g.state.pcie_generation); }},
    Field{"pcie.link.gen.max", "",
          [](const Machine&, const Gpu& g) { return std::to_string(g.gpu.pcie_max_generation); }},
    Field{"pcie.link.width.current", "",
          [](const Machine&, const Gpu& g) { return text_of(g.state.pcie_width); }},
    Field{"pcie.link.width.max", "",
          [](const Machine&, const Gpu& g) { return std::to_string(g.gpu.pcie_max_width); }},
    Field{"persistence_mode", "",
          [](const Machine&, const Gpu& g) { return on_off(g.state.persistence); }},
    Field{"power.draw", "W", [](const Machine&, const Gpu& g) { return watts(g.state.power_mw); }},
    Field{"power.limit", "W",
          [](const Machine&, const Gpu& g) { return watts(g.state.power_limit_mw); }},
    Field{"pstate", "",
          [](const Machine&, const Gpu& g) {
            return g.state.performance_state ? fmt::format("P{}", *g.state.performance_state) : "";
          }},
    Field{"serial", "", [](const Machine&, const Gpu& g) { return g.gpu.serial; }},
    Field{"temperature.gpu", "",
          [](const Machine&, const Gpu& g) { return text_of(g.state.temperature_c); }},
    Field{"utilization.gpu", "%",
          [](const Machine&, const Gpu& g) { return text_of(g.state.gpu_percent); }},
    Field{"utilization.memory", "%",
          [](const Machine&, const Gpu& g) { return text_of(g.state.memory_percent); }},
    Field{"uuid", "", [](const Machine&, const Gpu& g) { return g.gpu.uuid; }},
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t comma = 0; comma != std::string::npos; at = comma + 1) {
    comma = text.find(',', at);
    std::string part = text.substr(at, comma == std::string::npos ? comma : comma - at);
    part.erase(0, part.find_first_not_of(' '));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Result<CsvFormat> parse_csv_format(const std::string& text) {
  CsvFormat format;
  const auto words = split(text);
  if (words.front() != "csv")
    return Error{Errc::kInvalid, "--format \"" + text + "\": write csv[,noheader][,nounits]"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "noheader")
      format.header = false;
    else if (words[i] == "nounits")
      format.units = false;
    else
      return Error{Errc::kInvalid, "--format: \"" + words[i] + "\" is no word of it"};
  }
  return format;
}

Result<std::string> smi_query(const SmiMachine& machine, const std::string& fields,
                              const CsvFormat& format) {
  std::vector<const Field*> chosen;
  for (const std::string& name : split(fields)) {
    const auto* field = std::ranges::find(kFields, name, &Field::name);
    if (field == kFields.end())
      return Error{Errc::kInvalid, "--query-gpu: there is no field \"" + name +
                                       "\" (see aliquot smi --help-query-gpu)"};
    chosen.push_back(field);
  }
  std::string text;
  const auto add_line = [&](auto cell_of) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      text += (i == 0 ? "" : ", ") + cell_of(*chosen[i]);
    text += '\n';
  };
  const auto unit_of = [&](const Field& field, std::string_view open, std::string_view close) {
    return field.unit.empty() || !format.units
               ? std::string()
               : ' ' + std::string(open) + std::string(field.unit) + std::string(close);
  };
  if (format.header)
    add_line([&](const Field& f) { return std::string(f.name) + unit_of(f, "[", "]"); });
  for (const SmiGpu& gpu : machine.gpus)
    add_line([&](const Field& f) {
      const std::string value = f.value(machine, gpu);
      return value.empty() ? std::string("[N/A]") : value + unit_of(f, "", "");
    });
  return text;
}

std::vector<std::string> smi_fields() {
  std::vector<std::string> names;
  for (const Field& field : kFields) names.emplace_back(field.name);
  return names;
}

}  // namespace aliquot::cli
