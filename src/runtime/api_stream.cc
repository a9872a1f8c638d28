// Streams and events.
#include "runtime/driver.h"

using aliquot::runtime::Driver;
using aliquot::runtime::with_context;

// NOLINTBEGIN(readability-identifier-naming): the names of the CUDA runtime
extern "C" {

CUresult cudaStreamCreateWithFlags(CUstream* stream, unsigned flags) {
  return with_context([&](const Driver& it) { return it.cuStreamCreate(stream, flags); });
}
CUresult cudaStreamCreate(CUstream* stream) { return cudaStreamCreateWithFlags(stream, 0); }
CUresult cudaStreamDestroy(CUstream stream) {
  return with_context([&](const Driver& it) { return it.cuStreamDestroy_v2(stream); });
}
CUresult cudaStreamSynchronize(CUstream stream) {
  return with_context([&](const Driver& it) { return it.cuStreamSynchronize(stream); });
}
CUresult cudaStreamQuery(CUstream stream) {
  return with_context([&](const Driver& it) { return it.cuStreamQuery(stream); });
}
CUresult cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return with_context([&](const Driver& it) { return it.cuStreamWaitEvent(stream, event, flags); });
}
CUresult cudaStreamAttachMemAsync(CUstream stream, void* pointer, std::size_t bytes,
                                  unsigned flags) {
  return with_context([&](const Driver& it) {
    return it.cuStreamAttachMemAsync(stream, reinterpret_cast<CUdeviceptr>(pointer), bytes, flags);
  });
}

CUresult cudaEventCreateWithFlags(CUevent* event, unsigned flags) {
  return with_context([&](const Driver& it) { return it.cuEventCreate(event, flags); });
}
CUresult cudaEventCreate(CUevent* event) { return cudaEventCreateWithFlags(event, 0); }
CUresult cudaEventRecord(CUevent event, CUstream stream) {
  return with_context([&](const Driver& it) { return it.cuEventRecord(event, stream); });
}
CUresult cudaEventSynchronize(CUevent event) {
  return with_context([&](const Driver& it) { return it.cuEventSynchronize(event); });
}
CUresult cudaEventQuery(CUevent event) {
  return with_context([&](const Driver& it) { return it.cuEventQuery(event); });
}
CUresult cudaEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return with_context(
      [&](const Driver& it) { return it.cuEventElapsedTime(milliseconds, begin, end); });
}
CUresult cudaEventDestroy(CUevent event) {
  return with_context([&](const Driver& it) { return it.cuEventDestroy_v2(event); });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
