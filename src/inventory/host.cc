#include "inventory/host.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "common/files.h"

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

// What the firmware of virtual machines calls itself, and what people call that.
constexpr std::pair<std::string_view, std::string_view> kVendors[] = {
    {"QEMU", "KVM"},           {"Red Hat", "KVM"},       {"Amazon EC2", "KVM"},
    {"Google", "KVM"},         {"Alibaba Cloud", "KVM"}, {"Tencent Cloud", "KVM"},
    {"OpenStack", "KVM"},      {"VMware", "VMware"},     {"Microsoft", "Hyper-V"},
    {"innotek", "VirtualBox"}, {"Xen", "Xen"},
};

std::string read_hypervisor(const Sysfs& sys, const Sysfs& proc) {
  if (const auto type = sys.text("hypervisor/type")) return *type == "xen" ? "Xen" : *type;
  // The processor itself says that it is a guest's: clouds give bare machines the same names.
  const std::string cpu = proc.text("cpuinfo").value_or("");
  if (cpu.find(" hypervisor") == std::string::npos) return "";
  const std::string vendor = sys.text("class/dmi/id/sys_vendor").value_or("");
  for (const auto& [prefix, name] : kVendors)
    if (vendor.starts_with(prefix)) return std::string(name);
  return "unknown";
}

NumaNode read_node(const Sysfs& sys, const std::string& name) {
  const fs::path at = fs::path("devices/system/node") / name;
  NumaNode node;
  std::from_chars(name.data() + 4, name.data() + name.size(), node.node);
  node.cpus = sys.text(at / "cpulist").value_or("");
  std::istringstream distances(sys.text(at / "distance").value_or(""));
  for (unsigned distance = 0; distances >> distance;) node.distances.push_back(distance);
  // "Node 0 MemTotal:       131590000 kB"
  std::istringstream lines(sys.text(at / "meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, number, what;
    std::uint64_t kib = 0;
    if (words >> word >> number >> what >> kib && what == "MemTotal:")
      node.memory_bytes = kib * 1024;
  }
  return node;
}

}  // namespace

Host read_host(const Sysfs& sys, const Sysfs& proc) {
  Host host;
  host.kernel = proc.text("sys/kernel/osrelease").value_or("");
  host.hypervisor = read_hypervisor(sys, proc);
  host.product = sys.text("class/dmi/id/product_name").value_or("");
  for (const std::string& name : sys.list("devices/system/node"))
    if (name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9')
      host.numa.push_back(read_node(sys, name));
  std::ranges::sort(host.numa, {}, &NumaNode::node);
  return host;
}

MpsState read_mps(const fs::path& pipe_directory, const Sysfs& proc) {
  const auto pid = read_file(pipe_directory / "nvidia-cuda-mps-control.pid", 64);
  if (!pid) return MpsState::kNone;
  const std::string number = pid->substr(0, pid->find_first_not_of("0123456789"));
  // A pid that another program has taken meanwhile is no control daemon; the kernel keeps the
  // first 15 bytes of a name.
  const auto name = number.empty() ? std::nullopt : proc.text(fs::path(number) / "comm");
  return name && name->starts_with("nvidia-cuda-mps") ? MpsState::kRuns : MpsState::kLeftover;
}

std::string_view name_of(MpsState state) {
  switch (state) {
    case MpsState::kNone:
      return "none";
    case MpsState::kRuns:
      return "runs";
    case MpsState::kLeftover:
      return "leftover";
  }
  return "";
}

}  // namespace aliquot::inventory
