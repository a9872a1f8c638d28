// Contexts: their overhead is reserved before they are made; what was made in them goes with them.
#include "interposer/contexts.h"
#include "interposer/gate.h"
#include "interposer/guards.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

template <class Call>
CUresult create(CUcontext* out, CUdevice device, Call call) {
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  Reservation reservation(gpu, Kind::kContext, context_overhead(gpu));
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = nullptr;
  const CUresult result = call(out != nullptr ? &context : nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (!keep(held_contexts(), reservation, name_of(context), 0)) {
    real::cuCtxDestroy_v2(context);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = context;
  return CUDA_SUCCESS;
}

template <class Call>
CUresult destroy(CUcontext context, Call call) {
  const Held entry = held_contexts().take(name_of(context));
  gate_forget_context(name_of(context));
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    put_back(held_contexts(), entry);
    return result;
  }
  let_go_of_context(name_of(context));
  let_go(entry);
  return result;
}

// Green contexts live on their GPU's primary context, which the driver retains for them.
CUresult create_green(CUgreenCtx* out, CUdevResourceDesc description, CUdevice device,
                      unsigned flags) {
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  CUgreenCtx green = nullptr;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  {
    const PrimaryContext primary(gpu);
    if (!primary.granted()) return result;
    result = real::cuGreenCtxCreate(out != nullptr ? &green : nullptr, description, device, flags);
  }
  if (result != CUDA_SUCCESS) {
    PrimaryContext::settle(gpu);
    return result;
  }
  Reservation nothing(gpu, Kind::kContext, 0);
  if (!keep(held_contexts(), nothing, name_of(green), 0)) {
    real::cuGreenCtxDestroy(green);
    PrimaryContext::settle(gpu);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = green;
  return result;
}

template <class Call>
CUresult end_primary(CUdevice device, Call call) {
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  gate_forget_context(PrimaryContext::handle(gpu));  // it may be the last holder's call
  const CUresult result = call();
  if (result == CUDA_SUCCESS) PrimaryContext::settle(gpu);
  return result;
}

// Limits that the driver turns into device memory of the context. The stack is per thread and
// taken at launch; the broker sees it as unaccounted.
bool takes_memory(CUlimit limit) {
  return limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
}

// What a context took beyond its defaults, under a name that no object of the driver has: handles
// are aligned.
std::uint64_t name_of_limit(std::uint64_t context, CUlimit limit) {
  return context + static_cast<std::uint64_t>(limit);
}

CUresult set_memory_limit(CUlimit limit, std::size_t value) {
  const Place place = current_place();
  std::size_t before = 0;
  CUresult result = place.result;
  if (result == CUDA_SUCCESS) result = real::cuCtxGetLimit(&before, limit);
  if (result != CUDA_SUCCESS) return result;
  if (place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  Reservation growth(place.gpu, Kind::kContext, value > before ? value - before : 0);
  if (!growth.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  result = real::cuCtxSetLimit(limit, value);
  if (result != CUDA_SUCCESS) return result;
  std::size_t now = value;  // the driver may have rounded it
  real::cuCtxGetLimit(&now, limit);
  Held extra = held_objects().take(name_of_limit(place.context, limit));
  if (now < before) {
    const std::uint64_t less = before - now < extra.bytes ? before - now : extra.bytes;
    give_back(place.gpu, Kind::kContext, less);
    extra.bytes -= less;
    put_back(held_objects(), extra);
    return result;
  }
  if (!growth.resize(now - before)) {
    put_back(held_objects(), extra);
    real::cuCtxSetLimit(limit, before);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  extra = {name_of_limit(place.context, limit), place.context, extra.bytes + growth.bytes(),
           static_cast<std::uint64_t>(Kind::kContext), place.gpu};
  growth.commit();
  put_back(held_objects(), extra);
  return result;
}

}  // namespace

namespace guard {

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(context, device, [&](auto* at) { return real::cuCtxCreate(at, flags, device); });
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(context, device, [&](auto* at) { return real::cuCtxCreate_v2(at, flags, device); });
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params_array, int num_params,
                        unsigned int flags, CUdevice device) {
  return create(context, device, [&](auto* at) {
    return real::cuCtxCreate_v3(at, params_array, num_params, flags, device);
  });
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* ctx_create_params,
                        unsigned int flags, CUdevice device) {
  return create(context, device, [&](auto* at) {
    return real::cuCtxCreate_v4(at, ctx_create_params, flags, device);
  });
}

CUresult cuCtxDestroy(CUcontext context) {
  return destroy(context, [&] { return real::cuCtxDestroy(context); });
}
CUresult cuCtxDestroy_v2(CUcontext context) {
  return destroy(context, [&] { return real::cuCtxDestroy_v2(context); });
}
// Ends the context only when nobody else is attached to it: then the handle is no longer known.
CUresult cuCtxDetach(CUcontext context) {
  gate_forget_context(name_of(context));
  const CUresult result = real::cuCtxDetach(context);
  unsigned int version = 0;
  if (result != CUDA_SUCCESS) return result;
  const CUresult there = real::cuCtxGetApiVersion(context, &version);
  if (there == CUDA_ERROR_INVALID_CONTEXT || there == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    let_go_of_context(name_of(context));
    let_go(held_contexts().take(name_of(context)));
  }
  return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  {
    PrimaryContext primary(gpu);
    if (!primary.granted()) return result;
    result = real::cuDevicePrimaryCtxRetain(context, device);
    if (result == CUDA_SUCCESS) primary.is(*context);
  }
  if (result != CUDA_SUCCESS) PrimaryContext::settle(gpu);
  return result;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return end_primary(device, [&] { return real::cuDevicePrimaryCtxRelease(device); });
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return end_primary(device, [&] { return real::cuDevicePrimaryCtxRelease_v2(device); });
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return end_primary(device, [&] { return real::cuDevicePrimaryCtxReset(device); });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return end_primary(device, [&] { return real::cuDevicePrimaryCtxReset_v2(device); });
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc desc, CUdevice device,
                          unsigned int flags) {
  return create_green(context, desc, device, flags);
}
CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  const Held entry = held_contexts().take(name_of(context));
  const CUresult result = real::cuGreenCtxDestroy(context);
  if (result != CUDA_SUCCESS)
    put_back(held_contexts(), entry);
  else if (entry.name != 0)
    PrimaryContext::settle(static_cast<unsigned>(entry.gpu));
  return result;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return takes_memory(limit) ? set_memory_limit(limit, value) : real::cuCtxSetLimit(limit, value);
}

}  // namespace guard
}  // namespace aliquot::interposer
