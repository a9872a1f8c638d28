// Fills: cuMemset*.
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult fill(const Fill& what, CUstream handle, Waiting waiting) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = check_fill(what)) return result;
  FillOperation operation;
  operation.fill = what;
  operation.as_given = {what.to,    what.pitch, what.pattern.value, what.pattern.width,
                        what.width, what.height};
  return request(lock, *stream, operation, waiting);
}

Fill line(CUdeviceptr to, std::uint32_t value, std::uint32_t width, size_t count) {
  return {to, count * width, {value, width}, count, 1};
}

}  // namespace

// One line per function: the same fill with elements of one, two and four bytes.
extern "C" {

CUresult sim_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill(line(to, value, 1, count), nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return fill(line(to, value, 2, count), nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return fill(line(to, value, 4, count), nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(line(to, value, 1, count), stream, Waiting::kNot);
}
CUresult sim_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill(line(to, value, 2, count), stream, Waiting::kNot);
}
CUresult sim_cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return fill(line(to, value, 4, count), stream, Waiting::kNot);
}
CUresult sim_cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                             size_t height) {
  return fill({to, pitch, {value, 1}, width, height}, nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                              size_t height) {
  return fill({to, pitch, {value, 2}, width, height}, nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                              size_t height) {
  return fill({to, pitch, {value, 4}, width, height}, nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream) {
  return fill({to, pitch, {value, 1}, width, height}, stream, Waiting::kNot);
}
CUresult sim_cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream) {
  return fill({to, pitch, {value, 2}, width, height}, stream, Waiting::kNot);
}
CUresult sim_cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                size_t height, CUstream stream) {
  return fill({to, pitch, {value, 4}, width, height}, stream, Waiting::kNot);
}

}  // extern "C"
