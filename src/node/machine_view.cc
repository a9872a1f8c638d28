#include "node/machine_view.h"

#include "common/files.h"
#include "format/json.h"
#include "model/quantity.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using format::Json;

constexpr std::size_t kLargestCache = 4u << 20;

const Json* member(const Json* json, const char* key) {
  return json != nullptr ? json->find(key) : nullptr;
}

std::uint64_t number(const Json* json, std::uint64_t otherwise) {
  const std::int64_t* value = json != nullptr ? json->if_int() : nullptr;
  return value != nullptr && *value > 0 ? static_cast<std::uint64_t>(*value) : otherwise;
}

// A simulated machine knows what a context costs on its models, and how fast its time goes.
void add_simulated(const fs::path& machine_json, MachineView& view) {
  const auto text = read_file(machine_json, kLargestCache);
  const auto json = text ? format::parse_json(*text, machine_json.string()) : text.error();
  if (!json) return;
  const std::uint64_t scale = number(json->find("time_scale_micro"), 1'000'000);
  const Json* gpus = json->find("gpus");
  const Json* models = json->find("models");
  if (gpus == nullptr || models == nullptr || gpus->if_array() == nullptr ||
      models->if_array() == nullptr)
    return;
  for (std::size_t i = 0; i < view.gpus.size() && i < gpus->if_array()->size(); ++i) {
    view.gpus[i].time_scale_micro = scale;
    const Json* name = (*gpus->if_array())[i].find("model");
    for (const Json& model : *models->if_array())
      if (name != nullptr && model.find("name") != nullptr && *model.find("name") == *name)
        view.gpus[i].context_overhead_bytes = number(member(model.find("memory"), "context_bytes"),
                                                     view.gpus[i].context_overhead_bytes);
  }
}

}  // namespace

MachineView view_of(const inventory::Inventory& inventory, const inventory::Driver& driver) {
  MachineView view;
  for (const inventory::InventoryGpu& gpu : inventory.gpus) {
    const inventory::NvmlGpu& identity = gpu.identity;
    KnownGpu known;
    known.uuid = identity.uuid;
    known.name = identity.name;
    known.bus_id = identity.bus_id;
    known.total_bytes = gpu.memory_bytes;
    known.context_overhead_bytes = inventory::assumed_context_overhead_bytes(identity);
    view.gpus.push_back(std::move(known));
    view.offered.push_back({identity.uuid, identity.numa, true});
    view.minors[identity.uuid] = identity.minor;
  }
  if (auto shape = topology::Shape::of(inventory.topology))
    view.shape = std::make_shared<const topology::Shape>(*std::move(shape));
  if (driver.simulated()) add_simulated(driver.machine_directory / "machine.json", view);
  return view;
}

Result<FoundMachine> find_machine(const MachineSearch& search) {
  const auto driver_text = read_file(search.cache_directory / "driver.json", kLargestCache);
  const auto text = read_file(search.cache_directory / "inventory.json", kLargestCache);
  if (!driver_text || !text) return take_machine(search);
  const auto driver = inventory::parse_driver(*driver_text, "driver.json");
  auto inventory = inventory::parse_inventory(*text, "inventory.json");
  std::error_code code;
  const bool same =
      driver && inventory && inventory->driver == driver->name &&
      (search.sim.empty() ? !driver->simulated() : driver->name == "sim:" + search.sim) &&
      fs::exists(driver->libnvidia_ml, code);
  if (!same) return take_machine(search);
  return FoundMachine{*driver, *std::move(inventory), true};
}

Result<FoundMachine> take_machine(const MachineSearch& search) {
  std::vector<std::string> words{search.probe.string(), "driver", search.machines.string()};
  if (!search.sim.empty()) words.push_back(search.sim);
  const auto which = output_of(words, search.patience_ms, search.stop);
  if (!which) return which.error();
  const auto driver = inventory::parse_driver(*which, "aliquot-probe driver");
  if (!driver) return driver.error();
  const auto text =
      output_of({search.probe.string(), "inventory", search.machines.string(), driver->name},
                search.patience_ms, search.stop);
  if (!text) return text.error();
  auto inventory = inventory::parse_inventory(*text, "aliquot-probe inventory");
  if (!inventory) return inventory.error();
  // A cache that cannot be written costs time at the next start, nothing else.
  if (make_directories(search.cache_directory, 0755)) {
    (void)write_file_atomically(search.cache_directory / "inventory.json", *text);
    (void)write_file_atomically(search.cache_directory / "driver.json", *which);
  }
  return FoundMachine{*driver, *std::move(inventory), false};
}

}  // namespace aliquot::node
