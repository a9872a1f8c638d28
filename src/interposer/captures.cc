#include "interposer/captures.h"

#include "interposer/real_driver.h"

namespace aliquot::interposer {

constinit std::atomic<int> captures_under_way{0};

bool goes_into_graph(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return real::cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void capture_began(CUresult result) {
  if (result == CUDA_SUCCESS) captures_under_way.fetch_add(1, std::memory_order_relaxed);
}

void capture_ended(CUresult result) {
  // These refuse the call; every other error ends the capture.
  if (result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD || result == CUDA_ERROR_INVALID_VALUE ||
      result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_ILLEGAL_STATE)
    return;
  int count = captures_under_way.load(std::memory_order_relaxed);
  while (count > 0 && !captures_under_way.compare_exchange_weak(count, count - 1)) {
  }
}

void forget_captures() { captures_under_way = 0; }

}  // namespace aliquot::interposer
