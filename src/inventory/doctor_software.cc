// The checks of settings and software: host, containers, jobs, shares.

#include <algorithm>
#include <charconv>

#include "inventory/doctor_checks.h"
#include "inventory/fragmentation.h"
#include "inventory/job_hints.h"

namespace aliquot::inventory {
namespace {

// Docker's default is 64 MiB; NCCL takes some 10 MiB a GPU pair, data loaders more.
constexpr std::uint64_t kSmallShm = 256ull << 20;
constexpr double kMuchFragmentation = 0.3;

void check_host(const DoctorView& view, Findings& found) {
  if (view.mps == MpsState::kLeftover)
    found.add("MPS_LEFTOVER", "", "a pid file without its process in the pipe directory");
  if (view.shm_bytes > 0 && view.shm_bytes < kSmallShm)
    found.add("SHM_SMALL", "", std::to_string(view.shm_bytes >> 20) + " MiB");
  for (const std::string& node : view.lost_nodes)
    found.add("DEVICE_NODE_MISSING", node, "not there");
  for (const std::string& node : view.denied_nodes)
    found.add("CGROUP_DEVICE_DENIED", node, "open: operation not permitted");
  for (const std::string& stale : view.stale_cdi) found.add("CDI_STALE", "", stale);
  if (view.kubelet && !view.kubelet_socket)
    found.add("KUBELET_SOCKET_MISSING", "", "no kubelet.sock in device-plugins");
}

// By the version that NVIDIA's images tell in their environment.
void check_compat(const DoctorView& view, Findings& found) {
  const auto told = view.environment.find("CUDA_VERSION");
  const int image = told == view.environment.end() ? 0 : cuda_version_of(told->second);
  const bool data_center =
      std::ranges::all_of(view.gpus, [](const GpuLook& gpu) { return is_data_center(gpu.name); });
  const CompatAdvice advice = compat_advice(view.system.cuda_version, image, data_center);
  if (!advice.possible) found.add("DRIVER_TOO_OLD", "", advice.reason);
  if (advice.use && view.forced_compat.empty()) found.add("COMPAT_NEEDED", "", advice.reason);
  if (advice.use) return;
  for (const std::string& where : view.forced_compat)
    found.add("COMPAT_FORCED", "", where + (image == 0 ? "" : "; " + advice.reason));
}

void check_images(const DoctorView& view, Findings& found) {
  for (const std::string& path : view.image_libcudas)
    found.add("IMAGE_LIBCUDA", path, "the driver is " + view.system.driver_version);
  check_compat(view, found);
}

struct NcclRule {
  std::string_view name;
  std::string_view value;
  bool harmful;  // else it only repeats the default
  bool needs_rdma;
};

// NCCL's documented environment variables and their defaults (NVIDIA, NCCL user guide).
constexpr NcclRule kNcclRules[] = {
    {"NCCL_P2P_DISABLE", "1", true, false},    {"NCCL_SHM_DISABLE", "1", true, false},
    {"NCCL_NVLS_ENABLE", "0", true, false},    {"NCCL_IB_DISABLE", "1", true, true},
    {"NCCL_NET", "Socket", true, true},        {"NCCL_NET_GDR_LEVEL", "LOC", true, true},
    {"NCCL_SOCKET_IFNAME", "lo", true, false}, {"NCCL_P2P_LEVEL", "LOC", true, false},
    {"NCCL_P2P_DISABLE", "0", false, false},   {"NCCL_SHM_DISABLE", "0", false, false},
    {"NCCL_IB_DISABLE", "0", false, false},    {"NCCL_IB_TIMEOUT", "20", false, false},
    {"NCCL_IB_RETRY_CNT", "7", false, false},  {"NCCL_IB_SL", "0", false, false},
    {"NCCL_IB_TC", "0", false, false},         {"NCCL_BUFFSIZE", "4194304", false, false},
};

void check_gid(const DoctorView& view, const std::string& text, Findings& found) {
  unsigned index = 0;
  std::from_chars(text.data(), text.data() + text.size(), index);
  for (const RdmaDevice& nic : view.nics)
    for (const RdmaPort& port : nic.ports)
      if (port.ipv4_gid && *port.ipv4_gid != index)
        found.add("NCCL_HARMFUL", "NCCL_IB_GID_INDEX",
                  "is " + text + "; RoCE v2 over IPv4 is index " + std::to_string(*port.ipv4_gid) +
                      " of " + nic.name);
}

void check_nccl(const DoctorView& view, Findings& found) {
  const bool rdma =
      std::ranges::any_of(view.nics, [](const RdmaDevice& nic) { return !nic.software; });
  for (const NcclRule& rule : kNcclRules) {
    const auto set = view.environment.find(std::string(rule.name));
    if (set == view.environment.end() || set->second != rule.value) continue;
    if (rule.needs_rdma && !rdma) continue;
    found.add(rule.harmful ? "NCCL_HARMFUL" : "NCCL_DEFAULT", std::string(rule.name),
              "is " + set->second);
  }
  if (const auto gid = view.environment.find("NCCL_IB_GID_INDEX"); gid != view.environment.end())
    check_gid(view, gid->second, found);
}

void check_shares(const DoctorView& view, Findings& found) {
  MemoryFragmentation fragmentation;
  for (const GpuLook& gpu : view.gpus) {
    const auto shared = std::ranges::find(view.shares, gpu.uuid, &SharedGpu::uuid);
    const std::uint64_t granted = shared == view.shares.end() ? 0 : shared->granted_bytes;
    const std::string name = "GPU " + std::to_string(gpu.index);
    if (granted > gpu.memory_bytes && gpu.memory_bytes > 0)
      found.add("CGPU_ERR_OVERSUBSCRIPTION", name,
                std::to_string(granted >> 20) + " MiB granted, " +
                    std::to_string(gpu.memory_bytes >> 20) + " MiB there");
    if (shared != view.shares.end() && shared->bypassing_processes > 0)
      found.add("SHARE_BYPASS", name,
                std::to_string(shared->bypassing_processes) + " processes past their share");
    fragmentation.add(gpu.memory_bytes, granted);
  }
  if (fragmentation.ratio() > kMuchFragmentation)
    found.add("CGPU_ERR_FRAGMENTATION", "",
              std::to_string(static_cast<int>(fragmentation.ratio() * 100)) +
                  " % of the free memory is in remainders below a quarter of a GPU");
}

}  // namespace

void check_software(const DoctorView& view, Findings& found) {
  check_host(view, found);
  check_images(view, found);
  check_nccl(view, found);
  check_shares(view, found);
}

}  // namespace aliquot::inventory
