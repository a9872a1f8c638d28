#include "cli/smi_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/compute_view.h"
#include "cli/table.h"
#include "common/files.h"
#include "format/json.h"

namespace aliquot::cli {
namespace {

using format::Json;

constexpr std::uint64_t kMiB = 1ull << 20;

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

template <typename Value>
std::string or_dash(const std::optional<Value>& value, std::string_view unit) {
  return value ? fmt::format("{}{}", *value, unit) : "-";
}

std::string watts(const std::optional<unsigned>& milliwatts) {
  return milliwatts ? fmt::format("{}W", (*milliwatts + 500) / 1000) : "-";
}

std::string_view kind_letter(inventory::ProcessKind kind) {
  switch (kind) {
    case inventory::ProcessKind::kCompute:
      return "C";
    case inventory::ProcessKind::kGraphics:
      return "G";
    case inventory::ProcessKind::kMps:
      return "M+C";
  }
  return "?";
}

std::string program_of(std::int32_t pid) {
  auto name = read_file("/proc/" + std::to_string(pid) + "/comm", 4096);
  if (!name) return "-";
  while (!name->empty() && name->back() == '\n') name->pop_back();
  return *std::move(name);
}

Json optional_json(const std::optional<unsigned>& value) {
  return value ? Json(std::uint64_t{*value}) : Json();
}

Json gpu_json(const SmiGpu& row) {
  Json processes = Json::array();
  for (const auto& process : row.state.processes)
    processes.append(Json::object()
                         .set("pid", std::int64_t{process.pid})
                         .set("type", kind_letter(process.kind))
                         .set("used_bytes", process.bytes ? Json(*process.bytes) : Json()));
  const auto& memory = row.state.memory;
  return Json::object()
      .set("index", std::int64_t{row.index})
      .set("uuid", row.gpu.uuid)
      .set("name", row.gpu.name)
      .set("pci_bus_id", row.gpu.bus_id)
      .set("memory_total_bytes", memory.total_bytes)
      .set("memory_used_bytes", memory.used_bytes)
      .set("memory_free_bytes", memory.free_bytes)
      .set("memory_reserved_bytes", memory.reserved_bytes)
      .set("gpu_percent", optional_json(row.state.gpu_percent))
      .set("memory_percent", optional_json(row.state.memory_percent))
      .set("temperature_c", optional_json(row.state.temperature_c))
      .set("power_mw", optional_json(row.state.power_mw))
      .set("power_limit_mw", optional_json(row.state.power_limit_mw))
      .set("processes", processes)
      .set("trouble", row.trouble.empty() ? Json() : Json(row.trouble));
}

}  // namespace

std::string smi_table(const SmiMachine& machine) {
  const auto right = Table::Align::kRight;
  std::string text =
      fmt::format("{}: driver {}, CUDA {}\n", machine.title, machine.system.driver_version,
                  cuda_text(machine.system.cuda_version));
  Table gpus({{"GPU", right},
              {"NAME"},
              {"BUS"},
              {"USED", right},
              {"TOTAL", right},
              {"UTIL", right},
              {"POWER", right},
              {"TEMP", right}});
  Table processes({{"GPU", right}, {"PID", right}, {"TYPE"}, {"USED", right}, {"PROGRAM"}});
  for (const SmiGpu& row : machine.gpus) {
    const auto& memory = row.state.memory;
    const auto mib = [&](std::uint64_t bytes) {
      return row.trouble.empty() ? fmt::format("{}MiB", bytes / kMiB) : std::string("-");
    };
    gpus.add({std::to_string(row.index), row.gpu.name.substr(0, 24),
              row.gpu.bus_id.substr(row.gpu.bus_id.find(':') + 1), mib(memory.used_bytes),
              mib(memory.total_bytes), or_dash(row.state.gpu_percent, "%"),
              watts(row.state.power_mw), or_dash(row.state.temperature_c, "C")});
    for (const auto& process : row.state.processes)
      processes.add({std::to_string(row.index), std::to_string(process.pid),
                     std::string(kind_letter(process.kind)),
                     process.bytes ? fmt::format("{}MiB", *process.bytes / kMiB) : "-",
                     program_of(process.pid)});
  }
  text += gpus.text();
  for (const SmiGpu& row : machine.gpus)
    if (!row.trouble.empty()) text += fmt::format("GPU {}: {}\n", row.index, row.trouble);
  text += processes.empty() ? "no process uses a GPU\n" : '\n' + processes.text();
  if (!machine.leases.empty()) text += '\n' + compute_table(machine.leases);
  return text;
}

std::string smi_list(const SmiMachine& machine) {
  std::string text;
  for (const SmiGpu& row : machine.gpus)
    text += fmt::format("GPU {}: {} (UUID: {})\n", row.index, row.gpu.name, row.gpu.uuid);
  return text;
}

std::string smi_json(const SmiMachine& machine) {
  Json gpus = Json::array();
  for (const SmiGpu& row : machine.gpus) gpus.append(gpu_json(row));
  Json shares = Json::array();
  for (const broker::LeaseRow& lease : machine.leases)
    for (const broker::UsageRow& usage : lease.gpus)
      shares.append(Json::object()
                        .set("lease", lease.name)
                        .set("gpu", std::int64_t{usage.index})
                        .set("compute", compute_json(usage)));
  return Json::object()
      .set("machine", machine.title)
      .set("driver_version", machine.system.driver_version)
      .set("nvml_version", machine.system.nvml_version)
      .set("cuda_version", cuda_text(machine.system.cuda_version))
      .set("gpus", gpus)
      .set("shares", shares)
      .dump(2);
}

}  // namespace aliquot::cli
