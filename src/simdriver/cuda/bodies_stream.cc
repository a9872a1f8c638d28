// Streams, and what is ordered by them. Capture: bodies_capture.cc.
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUstream handle_of(Stream* stream) { return reinterpret_cast<CUstream>(stream); }

CUresult create(CUstream* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  // Outside the range the nearest priority is taken.
  const int within = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  Stream* stream = nullptr;
  if (const CUresult result = open_stream(*context, flags, within, stream)) return result;
  *handle = handle_of(stream);
  return CUDA_SUCCESS;
}

// A value in memory is waited for or written.
CUresult value_operations(CUstream handle, std::vector<CUstreamBatchMemOpParams> operations) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  ValueOperation operation;
  operation.operations = std::move(operations);
  if (const CUresult result = check_values(operation)) return result;
  return request(lock, *stream, std::move(operation), Waiting::kNot);
}

CUresult one_value(CUstream handle, int kind, CUdeviceptr address, std::uint64_t value,
                   unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.operation = kind;
  operation.value.address = address;
  operation.value.value = value;
  operation.value.flags = flags;
  return value_operations(handle, {operation});
}

// Runs one query on a stream under the lock.
template <typename Get>
CUresult ask_stream(CUstream handle, const void* out, Get get) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  return get(*stream);
}

}  // namespace

extern "C" {

CUresult sim_cuStreamCreate(CUstream* stream, unsigned int flags) {
  return create(stream, flags, 0);
}
CUresult sim_cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return create(stream, flags, priority);
}

CUresult sim_cuStreamDestroy_v2(CUstream handle) {
  const Lock lock = hold();
  Stream* stream = library().streams.find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  close_stream(*stream);
  return CUDA_SUCCESS;
}
CUresult sim_cuStreamDestroy(CUstream stream) { return sim_cuStreamDestroy_v2(stream); }

CUresult sim_cuStreamSynchronize(CUstream handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = refuse_capture(*stream)) return result;
  return synchronise(lock, *stream);
}

CUresult sim_cuStreamQuery(CUstream handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = refuse_capture(*stream)) return result;
  if (ended(*stream->context->pages, stream->slot, stream->submitted)) return CUDA_SUCCESS;
  show_interest(*stream->context, stream->slot, stream->submitted);
  return CUDA_ERROR_NOT_READY;
}

CUresult sim_cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (library().events.find(event_handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return request(lock, *stream, WaitOperation{event_handle}, Waiting::kNot);
}

CUresult sim_cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return ask_stream(handle, flags, [&](const Stream& stream) {
    *flags = stream.flags;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetPriority(CUstream handle, int* priority) {
  return ask_stream(handle, priority, [&](const Stream& stream) {
    *priority = stream.priority;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetId(CUstream handle, unsigned long long* stream_id) {
  return ask_stream(handle, stream_id, [&](const Stream& stream) {
    *stream_id = stream.id;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return ask_stream(handle, device, [&](const Stream& stream) {
    *device = stream.context->device->ordinal;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return ask_stream(handle, context, [&](const Stream& stream) {
    *context = handle_of(stream.context);
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return sim_cuStreamGetCtx(handle, context);
}

CUresult sim_cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  const CUstreamAttrValue* value) {
  return ask_stream(handle, value, [&](Stream& stream) {
    stream.attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  CUstreamAttrValue* value) {
  return ask_stream(handle, value, [&](const Stream& stream) {
    const auto set = stream.attributes.find(attribute);
    *value = set == stream.attributes.end() ? CUstreamAttrValue{} : set->second;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->number = stream.priority;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuStreamCopyAttributes(CUstream to, CUstream from) {
  Lock lock = hold();
  Stream* target = nullptr;
  Stream* source = nullptr;
  if (const CUresult result = resolve_stream(lock, to, target)) return result;
  if (const CUresult result = resolve_stream(lock, from, source)) return result;
  target->attributes = source->attributes;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  const Allocation* allocation = library().memory().find(address);
  const bool managed = allocation != nullptr && allocation->kind == AllocationKind::kManaged;
  return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  return request(lock, *stream, HostOperation{function, user_data}, Waiting::kNot);
}

CUresult sim_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* user_data,
                                 unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = refuse_capture(*stream)) return result;
  submit_hold(*stream, Effect::Kind::kHost, [callback, handle, user_data] {
    callback(handle, CUDA_SUCCESS, user_data);
    return true;
  });
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                    unsigned int flags) {
  return one_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
CUresult sim_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                    unsigned int flags) {
  return one_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
CUresult sim_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                     unsigned int flags) {
  return one_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
CUresult sim_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                     unsigned int flags) {
  return one_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
CUresult sim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                   CUstreamBatchMemOpParams* operations, unsigned int flags) {
  if (operations == nullptr || count > 256 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return value_operations(stream, {operations, operations + count});
}

}  // extern "C"
