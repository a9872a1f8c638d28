// Green contexts: a device's primary context with a part of its multiprocessors. The simulated
// scheduler gives a stream all of them, so only what the program is told is a part.
#include <algorithm>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/work.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

struct ResourceDescription {
  CUdevResource resource{};
};

struct GreenContext {
  DeviceView* device = nullptr;
  Context* context = nullptr;  // the primary one, held while this lives
  CUdevResource resource{};
  std::uint64_t id = 0;
};

Registry<ResourceDescription>& descriptions() {
  static auto* const all = new Registry<ResourceDescription>;  // NOLINT: lives for ever
  return *all;
}
Registry<GreenContext>& green_contexts() {
  static auto* const all = new Registry<GreenContext>;  // NOLINT: lives for ever
  return *all;
}

unsigned round_up(unsigned value, unsigned to) {
  return to == 0 ? value : (value + to - 1) / to * to;
}

}  // namespace

extern "C" {

CUresult sim_cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned int* num_groups,
                                         const CUdevResource* input, CUdevResource* remaining,
                                         unsigned int, unsigned int min_count) {
  if (num_groups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const unsigned least = std::max(input->sm.min_partition_size, 1u);
  const unsigned size = round_up(std::max(min_count, least), input->sm.coscheduled_alignment);
  const unsigned possible = input->sm.sm_count / size;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned count = groups == nullptr ? possible : std::min(*num_groups, possible);
  for (unsigned i = 0; groups != nullptr && i < count; ++i) {
    groups[i] = *input;
    groups[i].sm.sm_count = size;
  }
  *num_groups = count;
  if (remaining != nullptr) {
    *remaining = *input;
    remaining->sm.sm_count = input->sm.sm_count - count * size;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources,
                                       unsigned int count) {
  if (out == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  auto made = std::make_unique<ResourceDescription>();
  made->resource = resources[0];
  for (unsigned i = 1; i < count; ++i) made->resource.sm.sm_count += resources[i].sm.sm_count;
  *out = reinterpret_cast<CUdevResourceDesc>(descriptions().add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc description, CUdevice ordinal,
                              unsigned int) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const ResourceDescription* wanted = descriptions().find(description);
  if (wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto green = std::make_unique<GreenContext>();
  if (const CUresult result = retain_primary(*device, green->context)) return result;
  green->device = device;
  green->resource = wanted->resource;
  green->id = library().next_id();
  *out = reinterpret_cast<CUgreenCtx>(green_contexts().add(std::move(green)));
  return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxDestroy(CUgreenCtx handle) {
  CUdevice ordinal = 0;
  {
    const Lock lock = hold();
    const auto green = green_contexts().remove(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    ordinal = green->device->ordinal;
  }
  return sim_cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult sim_cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const GreenContext* green = green_contexts().find(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = handle_of(green->context);
  return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* out,
                                      CUdevResourceType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const GreenContext* green = green_contexts().find(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != green->resource.type) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = green->resource;
  return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const GreenContext* green = green_contexts().find(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = green->id;
  return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned int flags,
                                    int priority) {
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const GreenContext* green = green_contexts().find(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Stream* stream = nullptr;
  const CUresult result = open_stream(*green->context, flags, std::clamp(priority, -5, 0), stream);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUstream>(stream);
  return result;
}

// An ordinary stream has none.
CUresult sim_cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  CUcontext context = nullptr;
  return sim_cuStreamGetCtx(stream, &context);
}

CUresult sim_cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event) {
  CUcontext context = nullptr;
  if (const CUresult result = sim_cuCtxFromGreenCtx(&context, handle)) return result;
  return sim_cuCtxRecordEvent(context, event);
}
CUresult sim_cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event) {
  CUcontext context = nullptr;
  if (const CUresult result = sim_cuCtxFromGreenCtx(&context, handle)) return result;
  return sim_cuCtxWaitEvent(context, event);
}

}  // extern "C"
