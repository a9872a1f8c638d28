// Events: places in streams, with the time at which they were reached.
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/event_cells.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

constexpr unsigned kFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult find(CUevent handle, Event*& event) {
  event = library().events.find(handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

bool has_ended(const Event& event) {
  return event.recorded_in == nullptr || ended(*event.recorded_in, event.slot, event.seq);
}

CUresult time_of(const Event& event, std::int64_t& ended_ns) {
  Answer answer;
  const MarkRequest request{event.context_key, event.slot, event.number, event.seq};
  if (const CUresult result = library().ask(Op::kMark, request, &answer)) return result;
  const auto reply = answer.as<MarkReply>();
  if (!reply || reply->ended_ns < 0) return CUDA_ERROR_NOT_READY;
  ended_ns = reply->ended_ns;
  return CUDA_SUCCESS;
}

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags) {
  if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  Event* event = nullptr;
  if (const CUresult result = resolve_stream(lock, stream_handle, stream)) return result;
  if (const CUresult result = find(handle, event)) return result;
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  return request(lock, *stream, RecordOperation{handle}, Waiting::kNot);
}

}  // namespace

extern "C" {

CUresult sim_cuEventCreate(CUevent* handle, unsigned int flags) {
  const bool untimed = (flags & CU_EVENT_DISABLE_TIMING) != 0;
  if (handle == nullptr || (flags & ~kFlags) != 0 ||
      ((flags & CU_EVENT_INTERPROCESS) != 0 && !untimed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  auto event = std::make_unique<Event>();
  event->context = context;
  event->flags = flags;
  if (context->free_events.empty()) {
    event->number = context->events++;
  } else {
    event->number = context->free_events.back();
    context->free_events.pop_back();
  }
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    if (const CUresult result = make_event_cell(*context->device, event->cell)) return result;
  }
  *handle = reinterpret_cast<CUevent>(library().events.add(std::move(event)));
  return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent handle) {
  const Lock lock = hold();
  const std::unique_ptr<Event> event = library().events.remove(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->context->free_events.push_back(event->number);
  return CUDA_SUCCESS;
}
CUresult sim_cuEventDestroy(CUevent event) { return sim_cuEventDestroy_v2(event); }

CUresult sim_cuEventRecord(CUevent event, CUstream stream) { return record(event, stream, 0); }
CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return record(event, stream, flags);
}

CUresult sim_cuEventQuery(CUevent handle) {
  const Lock lock = hold();
  Event* event = nullptr;
  if (const CUresult result = find(handle, event)) return result;
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (const CUresult result = follow_cell(*event)) return result;
  if (has_ended(*event)) return CUDA_SUCCESS;
  show_interest(*event->context, event->slot, event->seq);
  return CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventSynchronize(CUevent handle) {
  Lock lock = hold();
  Event* event = nullptr;
  if (const CUresult result = find(handle, event)) return result;
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (const CUresult result = follow_cell(*event)) return result;
  if (event->recorded_in == nullptr) return CUDA_SUCCESS;
  return wait_until_ended(lock, event->recorded_in, event->slot, event->seq);
}

CUresult sim_cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Event* first = nullptr;
  Event* second = nullptr;
  if (const CUresult result = find(start, first)) return result;
  if (const CUresult result = find(end, second)) return result;
  const bool untimed = ((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) != 0;
  if (untimed || first->recorded_in == nullptr || second->recorded_in == nullptr ||
      first->context != second->context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  std::int64_t from = 0;
  std::int64_t to = 0;
  if (const CUresult result = time_of(*first, from)) return result;
  if (const CUresult result = time_of(*second, to)) return result;
  *milliseconds = static_cast<float>(static_cast<double>(to - from) / 1e6);
  return CUDA_SUCCESS;
}
CUresult sim_cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return sim_cuEventElapsedTime_v2(milliseconds, start, end);
}

CUresult sim_cuCtxRecordEvent(CUcontext handle, CUevent event) {
  Lock lock = hold();
  Context* context = nullptr;
  Event* found = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  if (const CUresult result = find(event, found)) return result;
  // Of all that is in the context: the default stream after every other.
  Stream& legacy = *context->legacy;
  library().streams.for_each([&](Stream& stream) {
    if (stream.context == context) submit_wait(legacy, last_of(stream));
  });
  return record_event(legacy, *found);
}

CUresult sim_cuCtxWaitEvent(CUcontext handle, CUevent event) {
  Lock lock = hold();
  Context* context = nullptr;
  Event* found = nullptr;
  if (const CUresult result = context_or_current(handle, context)) return result;
  if (const CUresult result = find(event, found)) return result;
  library().streams.for_each([&](Stream& stream) {
    if (stream.context == context) wait_event(stream, *found);
  });
  return wait_event(*context->legacy, *found);
}

}  // extern "C"
