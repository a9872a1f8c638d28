#include "cli/numa_binding.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <set>

#include "common/files.h"
#include "inventory/host.h"
#include "simdriver/cpu_list.h"

namespace aliquot::cli {
namespace {

constexpr unsigned kMostNodes = 1024;
constexpr unsigned kMostCpus = 4096;
constexpr unsigned kWordBits = sizeof(unsigned long) * CHAR_BIT;

// NVML writes the domain with eight digits and in capitals, the kernel with four.
std::string kernels_bus_id(std::string bus_id) {
  constexpr std::size_t kLength = 12;  // "0000:07:00.0"
  if (bus_id.size() > kLength) bus_id.erase(0, bus_id.size() - kLength);
  std::ranges::transform(bus_id, bus_id.begin(), [](unsigned char c) { return std::tolower(c); });
  return bus_id;
}

std::optional<unsigned> node_of(const inventory::NvmlGpu& gpu, const inventory::Sysfs& sys) {
  const auto told = sys.whole("bus/pci/devices/" + kernels_bus_id(gpu.bus_id) + "/numa_node");
  if (told && *told >= 0) return static_cast<unsigned>(*told);  // -1: the firmware does not say
  if (gpu.numa && *gpu.numa >= 0) return static_cast<unsigned>(*gpu.numa);
  return std::nullopt;
}

std::string list_text(const std::vector<unsigned>& numbers) {
  std::string text;
  for (const unsigned number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeSet>;

}  // namespace

Result<NumaBinding> near_gpus(const std::vector<inventory::NvmlGpu>& gpus,
                              const inventory::Sysfs& sys) {
  std::set<unsigned> nodes;
  for (const inventory::NvmlGpu& gpu : gpus) {
    const auto node = node_of(gpu, sys);
    if (!node)
      return Error{Errc::kNotFound,
                   "bind near GPU " + gpu.uuid +
                       ": this machine does not tell its NUMA node (virtual machines often do "
                       "not); run with --numa off"};
    nodes.insert(*node);
  }
  NumaBinding binding;
  binding.nodes.assign(nodes.begin(), nodes.end());
  const inventory::Host host = inventory::read_host(sys, inventory::Sysfs("/proc"));
  for (const unsigned number : binding.nodes) {
    const auto node =
        std::ranges::find(host.numa, static_cast<int>(number), &inventory::NumaNode::node);
    const auto cpus = node != host.numa.end()
                          ? simdriver::parse_cpu_list(node->cpus)
                          : Result<std::vector<unsigned>>(Error{Errc::kNotFound, "no such node"});
    if (!cpus)
      return Error{Errc::kNotFound, "bind near NUMA node " + std::to_string(number) +
                                        ": its CPUs are not told (" + cpus.error().message +
                                        "); run with --numa off"};
    binding.cpus.insert(binding.cpus.end(), cpus->begin(), cpus->end());
    if (node->memory_bytes != 0) binding.memory_nodes.push_back(number);
  }
  std::ranges::sort(binding.cpus);
  return binding;
}

Status bind_here(const NumaBinding& binding) {
  const CpuSet allowed(CPU_ALLOC(kMostCpus)), wanted(CPU_ALLOC(kMostCpus));
  const std::size_t size = CPU_ALLOC_SIZE(kMostCpus);
  CPU_ZERO_S(size, allowed.get());
  CPU_ZERO_S(size, wanted.get());
  if (::sched_getaffinity(0, size, allowed.get()) != 0) return errno_error("read", "CPU affinity");
  for (const unsigned cpu : binding.cpus)
    if (cpu < kMostCpus && CPU_ISSET_S(cpu, size, allowed.get()))
      CPU_SET_S(cpu, size, wanted.get());
  if (CPU_COUNT_S(size, wanted.get()) == 0)
    return Error{Errc::kUnavailable,
                 "bind to the CPUs of NUMA node " + list_text(binding.nodes) +
                     ": this process may use none of them (a cpuset, or a simulated machine larger "
                     "than this one); take a GPU of another node, or run with --numa off"};
  if (::sched_setaffinity(0, size, wanted.get()) != 0)
    return errno_error("bind to the CPUs of NUMA node", list_text(binding.nodes));
  std::array<unsigned long, kMostNodes / kWordBits> mask{};
  bool any = false;
  for (const unsigned node : binding.memory_nodes)
    if (node < kMostNodes) mask[node / kWordBits] |= 1ul << node % kWordBits, any = true;
  // A kernel without NUMA has one node, and no such call.
  if (any && ::syscall(SYS_set_mempolicy, MPOL_BIND, mask.data(), kMostNodes) != 0 &&
      errno != ENOSYS)
    return errno_error("bind to the memory of NUMA node", list_text(binding.memory_nodes));
  return {};
}

}  // namespace aliquot::cli
