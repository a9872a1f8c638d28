// Copies between addresses. Those of two and three dimensions: bodies_copy_box.cc; fills:
// bodies_fill.cc.
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/copies.h"
#include "simdriver/cuda/operations.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

std::uint64_t number(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// What the name of the function promises of a side.
enum class Must { kAny, kDevice, kHost };

bool keeps(const Side& side, Must must) {
  if (must == Must::kAny) return true;
  if (must == Must::kHost) return true;  // any address that the host may use
  return side.device ||
         library().memory().find_host(reinterpret_cast<const void*>(side.address)) != nullptr;
}

struct Line {
  std::uint64_t to;
  std::uint64_t from;
  std::uint64_t bytes;
  Must to_must = Must::kAny;
  Must from_must = Must::kAny;
};

CUresult copy_line(Lock& lock, Stream& stream, const Line& line, Waiting waiting) {
  Operation operation = CopyOperation{};
  auto& copy = std::get<CopyOperation>(operation);
  Box& box = copy.box;
  box.from = side_of(line.from);
  box.to = side_of(line.to);
  box.width = box.from.pitch = box.to.pitch = line.bytes;
  if (line.bytes == 0) return CUDA_SUCCESS;
  if (!keeps(box.from, line.from_must) || !keeps(box.to, line.to_must)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult result = check_side(box.from, box)) return result;
  if (const CUresult result = check_side(box.to, box)) return result;
  describe_line(box, copy.as_given);
  return request(lock, stream, std::move(operation), waiting);
}

CUresult now(const Line& line) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, nullptr, stream)) return result;
  return copy_line(lock, *stream, line, Waiting::kUntilDone);
}

CUresult later(const Line& line, CUstream handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  return copy_line(lock, *stream, line, Waiting::kNot);
}

}  // namespace

extern "C" {

CUresult sim_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now({to, from, bytes});
}
CUresult sim_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return later({to, from, bytes}, stream);
}
CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return now({to, number(from), bytes, Must::kDevice, Must::kHost});
}
CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return later({to, number(from), bytes, Must::kDevice, Must::kHost}, stream);
}
CUresult sim_cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return now({number(to), from, bytes, Must::kHost, Must::kDevice});
}
CUresult sim_cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return later({number(to), from, bytes, Must::kHost, Must::kDevice}, stream);
}
CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now({to, from, bytes, Must::kDevice, Must::kDevice});
}
CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return later({to, from, bytes, Must::kDevice, Must::kDevice}, stream);
}
CUresult sim_cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return now({to, from, bytes, Must::kDevice, Must::kDevice});
}
CUresult sim_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                               CUstream stream) {
  return later({to, from, bytes, Must::kDevice, Must::kDevice}, stream);
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                   CUmemcpyAttributes* attributes, size_t* first, size_t num,
                                   CUstream handle) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0 || attributes == nullptr ||
      first == nullptr || num == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A batch has no order with the null stream: none may be given.
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult result = later({to[i], from[i], sizes[i]}, handle)) return result;
  }
  return CUDA_SUCCESS;
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                CUmemcpyAttributes* attributes, size_t* first, size_t num,
                                size_t* fail, CUstream stream) {
  const CUresult result =
      sim_cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, first, num, stream);
  if (result != CUDA_SUCCESS && fail != nullptr) *fail = SIZE_MAX;
  return result;
}

}  // extern "C"
