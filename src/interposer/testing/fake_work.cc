// The fake driver's work: nothing runs, but events behave as if something did.
#include "interposer/testing/fake_driver_state.h"

using namespace aliquot::interposer::testing;

#define FAKE extern "C" [[gnu::visibility("default")]]
#define ENTER(name)                       \
  Books& all = books();                   \
  const std::scoped_lock lock(all.mutex); \
  if (const CUresult injected = all.enter(#name)) return injected

FAKE CUresult cuEventCreate(CUevent* event, unsigned int) {
  ENTER(cuEventCreate);
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  *event = handle_of<CUevent>(all.fresh_name());
  all.events[*event] = {};
  return CUDA_SUCCESS;
}
FAKE CUresult cuEventDestroy_v2(CUevent event) {
  ENTER(cuEventDestroy_v2);
  return all.events.erase(event) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
FAKE CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER(cuEventRecord);
  if (!all.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  all.events[event] = {stream, ++all.recorded};
  return CUDA_SUCCESS;
}
// Ended is what was recorded before finish_work() was called last, or all of it.
FAKE CUresult cuEventQuery(CUevent event) {
  ENTER(cuEventQuery);
  const auto found = all.events.find(event);
  if (found == all.events.end()) return CUDA_ERROR_INVALID_HANDLE;
  return all.work_ends || found->second.number <= all.finished ? CUDA_SUCCESS
                                                               : CUDA_ERROR_NOT_READY;
}
FAKE CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  ENTER(cuEventElapsedTime);
  *milliseconds = all.kernel_ms;
  return CUDA_SUCCESS;
}

FAKE CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  ENTER(cuStreamEndCapture);
  if (all.capturing.erase(stream) == 0) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = handle_of<CUgraph>(all.fresh_name());
  return CUDA_SUCCESS;
}

FAKE CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  ENTER(cuStreamGetCtx);
  const auto found = all.stream_contexts.find(stream);
  *context = found != all.stream_contexts.end() ? found->second : current_context();
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER(cuCtxPushCurrent_v2);
  all.pushed.push_back(current_context());
  current_context() = context;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  ENTER(cuCtxPopCurrent_v2);
  if (all.pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current_context();
  current_context() = all.pushed.back();
  all.pushed.pop_back();
  return CUDA_SUCCESS;
}
