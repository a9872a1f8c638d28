#include "simdriver/server/device_info.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "driver_abi/cuda_constants.h"

namespace aliquot::simdriver {
namespace {

// Device attributes in which every data-centre GPU from Volta on agrees (CUDA programming guide,
// technical specifications; deviceQuery outputs). What differs is computed below.
constexpr auto kCommon = std::to_array<std::pair<int, std::int32_t>>({
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, 1},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 0},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 100},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 0},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0},
    {CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0},
    {CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
});

// Shared memory and threads of one multiprocessor by compute capability (CUDA programming guide,
// "Technical Specifications per Compute Capability").
struct PerCapability {
  int capability;
  std::int32_t shared_per_multiprocessor;
  std::int32_t shared_per_block_optin;
  std::int32_t threads_per_multiprocessor;
  std::int32_t blocks_per_multiprocessor;
};
constexpr auto kCapabilities = std::to_array<PerCapability>({
    {70, 98304, 98304, 2048, 32},
    {75, 65536, 65536, 1024, 16},
    {80, 167936, 166912, 2048, 32},
    {86, 102400, 101376, 1536, 16},
    {89, 102400, 101376, 1536, 24},
    {90, 233472, 232448, 2048, 32},
    {100, 233472, 232448, 2048, 32},
    {120, 102400, 101376, 1536, 24},
});

const PerCapability& of_capability(int capability) {
  const PerCapability* best = kCapabilities.data();
  for (const PerCapability& row : kCapabilities) {
    if (row.capability <= capability) best = &row;
  }
  return *best;
}

void set_model(const GpuModel& model, DeviceInfo& info) {
  const auto set = [&](int id, auto value) {
    info.attributes[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(value);
  };
  const int capability = model.compute_capability.major * 10 + model.compute_capability.minor;
  const PerCapability& limits = of_capability(capability);
  const bool hopper_on = model.compute_capability.major >= 9;
  set(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, model.clocks.graphics_max_mhz * 1000);
  set(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, model.clocks.memory_max_mhz * 1000);
  set(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, model.sms);
  set(CU_DEVICE_ATTRIBUTE_INTEGRATED, 0);
  set(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, model.ecc);
  set(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, model.memory.bus_bits);
  set(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, model.memory.l2_bytes);
  set(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
      capability >= 80 ? model.memory.l2_bytes / 16 * 11 : 0);
  set(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, capability >= 80 ? 134213632 : 0);
  set(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, limits.threads_per_multiprocessor);
  set(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, limits.blocks_per_multiprocessor);
  set(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, limits.shared_per_multiprocessor);
  set(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, limits.shared_per_block_optin);
  set(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, capability >= 80 ? 1024 : 0);
  set(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, model.copy_engines);
  set(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, model.compute_capability.major);
  set(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, model.compute_capability.minor);
  set(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, hopper_on);
  set(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, hopper_on ? 4 : 1);
  set(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, hopper_on);
  set(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, hopper_on);
  set(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0);
  set(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, model.pci_device_id);
  set(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, model.pci_subsystem_id);
}

void set_place(const MachineSpec& spec, std::uint32_t device, DeviceInfo& info) {
  const GpuSpec& gpu = spec.gpus[device];
  info.pci_domain = gpu.pci.domain;
  info.pci_bus = gpu.pci.bus;
  info.pci_device = gpu.pci.device;
  info.attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = static_cast<std::int32_t>(gpu.pci.domain);
  info.attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = gpu.pci.bus;
  info.attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = gpu.pci.device;
  info.attributes[CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID] = static_cast<std::int32_t>(device);
  info.attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = gpu.numa;
  for (std::uint32_t other = 0; other < spec.gpus.size() && other < 64; ++other) {
    if (other == device) continue;
    const bool nvlink = device < spec.nvlinks.size() && other < spec.nvlinks[device].size() &&
                        spec.nvlinks[device][other] > 0;
    const bool one_root = device < spec.pcie.size() && other < spec.pcie[device].size() &&
                          spec.pcie[device][other] < PciePath::kSys;
    // GeForce cards have no peer access over PCIe (facts of the driver since Ada).
    const bool consumer = spec.model_of(device).brand == Brand::kGeforceRtx;
    if (nvlink) info.nvlink_peers |= 1ull << other;
    if (nvlink || (one_root && !consumer)) info.peers |= 1ull << other;
  }
}

DeviceInfo info_of(const MachineSpec& spec, std::uint32_t gpu, const GpuModel& model) {
  DeviceInfo info{};
  const std::size_t length = std::min(model.product.size(), info.name.size() - 1);
  std::memcpy(info.name.data(), model.product.data(), length);
  info.uuid = info.gpu_uuid = spec.gpus[gpu].uuid;
  info.total_bytes = model.memory.driver_total_bytes;
  info.launch_ns = static_cast<std::uint32_t>(model.timing.launch_ns);
  info.graph_launch_ns = static_cast<std::uint32_t>(model.timing.graph_launch_ns);
  info.graph_node_ns = static_cast<std::uint32_t>(model.timing.graph_node_ns);
  info.attributes.fill(kAbsentAttribute);
  for (const auto& [id, value] : kCommon) info.attributes[static_cast<std::size_t>(id)] = value;
  set_model(model, info);
  set_place(spec, gpu, info);
  info.attributes[CU_DEVICE_ATTRIBUTE_MPS_ENABLED] = spec.mps ? 1 : 0;
  return info;
}

}  // namespace

DeviceInfo device_info(const MachineSpec& spec, std::uint32_t gpu) {
  return info_of(spec, gpu, spec.model_of(gpu));
}

DeviceInfo instance_info(const MachineSpec& spec, std::uint32_t gpu, const GpuModel& model,
                         const Uuid& uuid) {
  DeviceInfo info = info_of(spec, gpu, model);
  info.uuid = uuid;
  info.peers = info.nvlink_peers = 0;
  return info;
}

}  // namespace aliquot::simdriver
