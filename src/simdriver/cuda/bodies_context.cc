// Contexts: a device's primary one, ordinary ones, and the calling thread's stack of them.
#include <algorithm>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/work.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace aliquot::simdriver {

CUcontext handle_of(Context* context) { return reinterpret_cast<CUcontext>(context); }
Context* find_context(CUcontext handle) { return library().contexts.find(handle); }

CUresult context_or_current(CUcontext handle, Context*& context) {
  if (handle == nullptr) return current_context(context);
  context = find_context(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult retain_primary(DeviceView& device, Context*& context) {
  if (device.primary == nullptr) {
    const CUresult result = open_context(device, device.primary_flags, true, device.primary);
    if (result != CUDA_SUCCESS) {
      device.primary = nullptr;
      return result;
    }
  }
  ++device.primary_uses;
  context = device.primary;
  return CUDA_SUCCESS;
}

namespace {

// CU_CTX_MAP_HOST is always on and not reported as asked for.
constexpr unsigned kFlagsMask = CU_CTX_FLAGS_MASK;

CUresult valid_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  const bool known = schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
                     schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC;
  return (flags & ~kFlagsMask) != 0 || !known ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult create(CUcontext* handle, unsigned flags, CUdevice ordinal) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = valid_flags(flags)) return result;
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = nullptr;
  if (const CUresult result = open_context(*device, flags, false, context)) return result;
  context_stack().push_back(context);
  *handle = handle_of(context);
  return CUDA_SUCCESS;
}

void close_primary(Lock& lock, DeviceView& device) {
  Context* context = device.primary;
  device.primary = nullptr;
  device.primary_uses = 0;
  close_context(lock, *context);
}

CUresult set_primary_flags(CUdevice ordinal, unsigned flags, bool refuse_active) {
  if (const CUresult result = valid_flags(flags)) return result;
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary != nullptr && refuse_active) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  device->primary_flags = flags;
  if (device->primary != nullptr) device->primary->flags = flags;
  return CUDA_SUCCESS;
}

// What cuCtxGetLimit says before anything was set (CUDA programming guide; observed values).
constexpr std::pair<int, std::size_t> kLimits[] = {
    {CU_LIMIT_STACK_SIZE, 1024},
    {CU_LIMIT_PRINTF_FIFO_SIZE, 1048576},
    {CU_LIMIT_MALLOC_HEAP_SIZE, 8388608},
    {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
    {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
    {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
    {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0},
};

}  // namespace
}  // namespace aliquot::simdriver

extern "C" {

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* found = nullptr;
  if (const CUresult result = retain_primary(*view, found)) return result;
  *context = handle_of(found);
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Lock lock = hold();
  DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (view->primary == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (--view->primary_uses == 0) close_primary(lock, *view);
  return CUDA_SUCCESS;
}
CUresult sim_cuDevicePrimaryCtxRelease(CUdevice device) {
  return sim_cuDevicePrimaryCtxRelease_v2(device);
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  Lock lock = hold();
  DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (view->primary != nullptr) close_primary(lock, *view);
  return CUDA_SUCCESS;
}
CUresult sim_cuDevicePrimaryCtxReset(CUdevice device) {
  return sim_cuDevicePrimaryCtxReset_v2(device);
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return set_primary_flags(device, flags, false);
}
CUresult sim_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return set_primary_flags(device, flags, true);
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *flags = view->primary_flags;
  *active = view->primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}
CUresult sim_cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}
CUresult sim_cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int num_params,
                            unsigned int flags, CUdevice device) {
  if (num_params != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, flags, device);
}
CUresult sim_cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                            CUdevice device) {
  if (params != nullptr && params->num_exec_affinity_params != 0) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (params != nullptr && params->cig_params != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create(context, flags, device);
}

CUresult sim_cuCtxDestroy_v2(CUcontext handle) {
  Lock lock = hold();
  Context* context = find_context(handle);
  if (context == nullptr) {
    return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  close_context(lock, *context);
  return CUDA_SUCCESS;
}
CUresult sim_cuCtxDestroy(CUcontext context) { return sim_cuCtxDestroy_v2(context); }

CUresult sim_cuCtxAttach(CUcontext* handle, unsigned int flags) {
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  ++context->usage;
  *handle = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxDetach(CUcontext handle) {
  {
    const Lock lock = hold();
    Context* context = find_context(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->usage > 1) {
      --context->usage;
      return CUDA_SUCCESS;
    }
  }
  return sim_cuCtxDestroy_v2(handle);
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext handle) {
  const Lock lock = hold();
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult sim_cuCtxPushCurrent(CUcontext context) { return sim_cuCtxPushCurrent_v2(context); }

CUresult sim_cuCtxPopCurrent_v2(CUcontext* handle) {
  const Lock lock = hold();
  auto& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != nullptr) *handle = handle_of(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult sim_cuCtxPopCurrent(CUcontext* context) { return sim_cuCtxPopCurrent_v2(context); }

CUresult sim_cuCtxSetCurrent(CUcontext handle) {
  const Lock lock = hold();
  auto& stack = context_stack();
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext* handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const auto& stack = context_stack();
  *handle = stack.empty() ? nullptr : handle_of(stack.back());
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}
CUresult sim_cuCtxGetDevice(CUdevice* device) { return sim_cuCtxGetDevice_v2(device, nullptr); }

CUresult sim_cuCtxGetFlags(unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetFlags(unsigned int flags) {
  if (const CUresult result = valid_flags(flags)) return result;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(CUcontext handle, unsigned long long* ctx_id) {
  if (ctx_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  *ctx_id = context->key;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  const auto known = std::ranges::find(kLimits, limit, &std::pair<int, std::size_t>::first);
  if (known == std::end(kLimits)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const auto set = context->limits.find(limit);
  *value = set == context->limits.end() ? known->second : set->second;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  const auto known = std::ranges::find(kLimits, limit, &std::pair<int, std::size_t>::first);
  if (known == std::end(kLimits)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  *config = context->cache_config;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCacheConfig(CUfunc_cache config) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  *config = 1;  // banks of four bytes, the only size since Volta
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetSharedMemConfig(CUsharedconfig) {
  const Lock lock = hold();
  Context* context = nullptr;
  return current_context(context);
}

CUresult sim_cuCtxResetPersistingL2Cache() {
  const Lock lock = hold();
  Context* context = nullptr;
  return current_context(context);
}

CUresult sim_cuCtxGetStreamPriorityRange(int* least_priority, int* greatest_priority) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  if (least_priority != nullptr) *least_priority = 0;
  if (greatest_priority != nullptr) *greatest_priority = -5;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetExecAffinity(CUexecAffinityParam* exec_affinity, CUexecAffinityType type) {
  if (exec_affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  exec_affinity->type = type;
  exec_affinity->sm_count =
      static_cast<unsigned>(context->device->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext handle) {
  Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  return synchronise(lock, *context);
}
CUresult sim_cuCtxSynchronize() { return sim_cuCtxSynchronize_v2(nullptr); }

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer_context, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Context* peer = find_context(peer_context);
  if (peer == nullptr || peer->device == context->device) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->device->reaches(*peer->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return context->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer_context) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Context* peer = find_context(peer_context);
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->peers.erase(peer) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // extern "C"
