// Devices: what there is, and what it can do.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/library.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult find(CUdevice ordinal, DeviceView*& device) {
  device = library().device(ordinal);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  *count = static_cast<int>(library().devices().size());
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  if (library().device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char* name, int length, CUdevice device) {
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", view->info.name.data());
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  std::memcpy(uuid->bytes, view->info.uuid.data(), sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

// The older one knows no instances: the UUID of the GPU that they lie in.
CUresult sim_cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  std::memcpy(uuid->bytes, view->info.gpu_uuid.data(), sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  *bytes = view->info.total_bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t wide = 0;
  if (const CUresult result = sim_cuDeviceTotalMem_v2(&wide, device)) return result;
  *bytes = static_cast<unsigned int>(std::min<size_t>(wide, UINT32_MAX));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr || attribute <= 0 ||
      static_cast<std::size_t>(attribute) >= kDeviceAttributes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  const int known = view->attribute(attribute);
  if (known == kAbsentAttribute) return CUDA_ERROR_INVALID_VALUE;
  *value = known;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  *major = view->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = view->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  const auto of = [&](int id) { return view->attribute(id); };
  *properties = {of(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                 {of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                  of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
                 {of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                  of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
                 of(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                 of(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
                 of(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
                 of(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
                 of(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
                 of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                 of(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetPCIBusId(char* pci_bus_id, int length, CUdevice device) {
  if (pci_bus_id == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  std::snprintf(pci_bus_id, static_cast<std::size_t>(length), "%04X:%02X:%02X.0",
                view->info.pci_domain, view->info.pci_bus, view->info.pci_device);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice* device, const char* pci_bus_id) {
  if (device == nullptr || pci_bus_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  const bool full = std::sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) == 3;  // NOLINT
  if (!full) {
    domain = 0;
    if (std::sscanf(pci_bus_id, "%x:%x", &bus, &slot) != 2) {  // NOLINT(cert-err34-c)
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const Lock lock = hold();
  for (const auto& view : library().devices()) {
    if (view->info.pci_domain != domain || view->info.pci_bus != bus ||
        view->info.pci_device != slot) {
      continue;
    }
    *device = view->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceCanAccessPeer(int* can_access_peer, CUdevice device, CUdevice peer_dev) {
  if (can_access_peer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* from = nullptr;
  DeviceView* to = nullptr;
  if (const CUresult result = find(device, from)) return result;
  if (const CUresult result = find(peer_dev, to)) return result;
  *can_access_peer = from != to && from->reaches(*to) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute,
                                     CUdevice from_device, CUdevice to_device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* from = nullptr;
  DeviceView* to = nullptr;
  if (const CUresult result = find(from_device, from)) return result;
  if (const CUresult result = find(to_device, to)) return result;
  if (from == to) return CUDA_ERROR_INVALID_DEVICE;
  const bool nvlink = from->linked_to(*to);
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      *value = nvlink ? 0 : 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = from->reaches(*to) ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
      *value = nvlink && attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Of Windows only.
CUresult sim_cuDeviceGetLuid(char*, unsigned int*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult sim_cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType type, CUdevice device) {
  if (value == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  *value = 0;  // needs MPS
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t* max_width_in_elements, CUarray_format,
                                                unsigned, CUdevice device) {
  if (max_width_in_elements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = nullptr;
  if (const CUresult result = find(device, view)) return result;
  *max_width_in_elements =
      static_cast<size_t>(view->attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  return CUDA_SUCCESS;
}

}  // extern "C"
