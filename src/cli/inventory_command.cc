#include "cli/inventory_command.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <ostream>

#include "cli/surroundings.h"
#include "cli/table.h"

namespace aliquot::cli {
namespace {

using inventory::Inventory;
using inventory::InventoryGpu;
using inventory::RdmaDevice;

struct InventoryOptions {
  std::string sim;
  bool json = false;
};

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string numa_text(const std::optional<int>& numa) { return numa ? std::to_string(*numa) : "-"; }

std::string gpu_remarks(const InventoryGpu& gpu) {
  std::string text;
  const auto add = [&](const std::string& remark) { text += (text.empty() ? "" : ", ") + remark; };
  if (gpu.mig) add("MIG on");
  if (gpu.compute_mode == 2) add("compute prohibited");
  if (gpu.compute_mode == 3) add("exclusive process");
  if (!gpu.identity.virtualization.empty() && gpu.identity.virtualization != "none")
    add(gpu.identity.virtualization);
  return text;
}

std::string gpu_table(const Inventory& all) {
  using enum Table::Align;
  Table table({{"GPU", kRight},
               {"NAME"},
               {"MEMORY", kRight},
               {"BAR1", kRight},
               {"BUS"},
               {"NUMA", kRight},
               {"NEAREST NIC"},
               {"NEAREST DRIVE"},
               {"REMARKS"}});
  for (std::size_t i = 0; i < all.gpus.size(); ++i) {
    const InventoryGpu& gpu = all.gpus[i];
    table.add({std::to_string(i), gpu.identity.name, fmt::format("{} MiB", gpu.memory_bytes >> 20),
               gpu.bar1_bytes == 0 ? "-" : fmt::format("{} MiB", gpu.bar1_bytes >> 20),
               gpu.identity.bus_id, numa_text(gpu.identity.numa), or_dash(gpu.nearest_nic),
               or_dash(gpu.nearest_nvme), gpu_remarks(gpu)});
  }
  return table.text();
}

std::string nic_table(const Inventory& all) {
  using enum Table::Align;
  Table table(
      {{"NIC"}, {"KIND"}, {"RATE", kRight}, {"STATE"}, {"DRIVER"}, {"BUS"}, {"NUMA", kRight}});
  for (const RdmaDevice& nic : all.nics) {
    bool active = false;
    std::uint32_t rate_mb_s = 0;
    for (const inventory::RdmaPort& port : nic.ports) {
      active = active || port.active;
      rate_mb_s = std::max(rate_mb_s, port.rate_mb_s);
    }
    table.add({nic.name,
               std::string(inventory::name_of(nic.kind)) + (nic.software ? " (software)" : ""),
               fmt::format("{} Gbit/s", rate_mb_s * 8 / 1000), active ? "active" : "down",
               or_dash(nic.driver), or_dash(nic.pci), numa_text(nic.numa)});
  }
  return table.text();
}

Status show(const InventoryOptions& options, std::ostream& out) {
  if (inside_lease())
    return Error{Errc::kDenied, "inside a share only the share can be seen: use aliquot smi"};
  const auto driver = inventory::choose_driver(driver_question(options.sim));
  if (!driver) return driver.error();
  const auto nvml = inventory::open_nvml(driver->libnvidia_ml);
  if (!nvml) return nvml.error();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto all =
      inventory::collect(**nvml, inventory::roots_of(*driver), *driver,
                         std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (!all) return all.error();
  if (options.json)
    out << inventory::to_json(*all).dump(2) << '\n';
  else
    out << inventory_text(*all, driver->title());
  return {};
}

}  // namespace

std::string inventory_text(const Inventory& all, const std::string& source) {
  std::string text =
      fmt::format("{}: driver {}, CUDA {}.{}", source, all.system.driver_version,
                  all.system.cuda_version / 1000, all.system.cuda_version % 1000 / 10);
  if (!all.host.product.empty()) text += ", " + all.host.product;
  if (!all.host.kernel.empty())
    text += all.host.hypervisor.empty() ? ", bare metal" : ", guest of " + all.host.hypervisor;
  text += fmt::format("\nGPUDirect RDMA: {}; MPS: {}\n", inventory::name_of(all.gpu_direct),
                      inventory::name_of(all.mps));
  if (all.topology_hidden)
    text += "the virtual machine hides its topology: every device seems to be on one bus\n";
  text += "\n" + gpu_table(all);
  if (!all.nics.empty()) text += "\n" + nic_table(all);
  return text;
}

void add_inventory_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("inventory", "List GPUs, RDMA devices and what is near them");
  auto options = std::make_shared<InventoryOptions>();
  command->add_option("--sim", options->sim, "Running simulated machine");
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, &invocation] {
    if (const Status shown = show(*options, invocation.out); !shown)
      fail(invocation, "inventory", shown.error());
  });
}

}  // namespace aliquot::cli
