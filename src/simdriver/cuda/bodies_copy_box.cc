// Copies of two and three dimensions, and those from and to arrays.
#include <array>
#include <cstdint>

#include "simdriver/cuda/arrays.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult copy_box(const CUDA_MEMCPY3D& copy, CUstream handle, Waiting waiting) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  CopyOperation operation;
  operation.as_given = copy;
  if (const CUresult result = box_of(copy, operation.box)) return result;
  if (operation.box.bytes() == 0) return CUDA_SUCCESS;
  return request(lock, *stream, operation, waiting);
}

CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy{};
  copy.from_x_bytes = peer.from_x_bytes;
  copy.from_y = peer.from_y;
  copy.from_z = peer.from_z;
  copy.from_level = peer.from_level;
  copy.from_type = peer.from_type;
  copy.from_host = peer.from_host;
  copy.from_device = peer.from_device;
  copy.from_array = peer.from_array;
  copy.from_pitch = peer.from_pitch;
  copy.from_height = peer.from_height;
  copy.to_x_bytes = peer.to_x_bytes;
  copy.to_y = peer.to_y;
  copy.to_z = peer.to_z;
  copy.to_level = peer.to_level;
  copy.to_type = peer.to_type;
  copy.to_host = peer.to_host;
  copy.to_device = peer.to_device;
  copy.to_array = peer.to_array;
  copy.to_pitch = peer.to_pitch;
  copy.to_height = peer.to_height;
  copy.width_bytes = peer.width_bytes;
  copy.height = peer.height;
  copy.depth = peer.depth;
  return copy;
}

// Operands of a batch (CUmemcpy3DOperandType), and a memory type that is found by its address.
constexpr int kPointer = 1;
constexpr int kArrayOperand = 2;
constexpr int kUnified = 4;

// Lengths of a batch's copy count elements: an array's where one takes part, else bytes.
CUresult element_of(const CUDA_MEMCPY3D_BATCH_OP& copy, std::uint64_t& bytes) {
  const Lock lock = hold();
  bytes = 0;
  for (const CUmemcpy3DOperand* end : {&copy.from, &copy.to}) {
    if (end->type == kPointer) continue;
    const Array* array = end->type == kArrayOperand ? find_array(end->array.array) : nullptr;
    if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t own = element_bytes(array->shape.format, array->shape.channels);
    if (bytes != 0 && own != bytes) return CUDA_ERROR_INVALID_VALUE;
    bytes = own;
  }
  if (bytes == 0) bytes = 1;
  return CUDA_SUCCESS;
}

size_t or_else(size_t given, size_t otherwise) { return given != 0 ? given : otherwise; }

CUresult copy_of_batch(const CUDA_MEMCPY3D_BATCH_OP& one, CUstream stream) {
  std::uint64_t element = 1;
  if (const CUresult result = element_of(one, element)) return result;
  CUDA_MEMCPY3D copy{};
  copy.width_bytes = one.width * element;
  copy.height = one.height;
  copy.depth = one.depth;
  copy.from_type = copy.to_type = kUnified;
  if (one.from.type == kPointer) {
    copy.from_device = one.from.pointer.address;
    copy.from_pitch = or_else(one.from.pointer.row_length, one.width) * element;
    copy.from_height = or_else(one.from.pointer.layer_height, one.height);
  } else {
    copy.from_type = CU_MEMORYTYPE_ARRAY;
    copy.from_array = one.from.array.array;
    copy.from_x_bytes = one.from.array.x * element;
    copy.from_y = one.from.array.y;
    copy.from_z = one.from.array.z;
  }
  if (one.to.type == kPointer) {
    copy.to_device = one.to.pointer.address;
    copy.to_pitch = or_else(one.to.pointer.row_length, one.width) * element;
    copy.to_height = or_else(one.to.pointer.layer_height, one.height);
  } else {
    copy.to_type = CU_MEMORYTYPE_ARRAY;
    copy.to_array = one.to.array.array;
    copy.to_x_bytes = one.to.array.x * element;
    copy.to_y = one.to.array.y;
    copy.to_z = one.to.array.z;
  }
  return copy_box(copy, stream, Waiting::kNot);
}

// One end of a copy with an array: the array from a byte offset on, or an address.
struct End {
  CUarray array = nullptr;
  size_t offset = 0;
  CUdeviceptr device = 0;
  const void* host = nullptr;
  int type() const {
    if (array != nullptr) return CU_MEMORYTYPE_ARRAY;
    return host != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  }
};

CUresult copy_array_line(const End& to, const End& from, size_t bytes, CUstream stream,
                         Waiting waiting) {
  CUDA_MEMCPY3D copy{};
  copy.from_type = from.type();
  copy.from_array = from.array;
  copy.from_x_bytes = from.offset;
  copy.from_device = from.device;
  copy.from_host = from.host;
  copy.to_type = to.type();
  copy.to_array = to.array;
  copy.to_x_bytes = to.offset;
  copy.to_device = to.device;
  copy.to_host = const_cast<void*>(to.host);
  copy.width_bytes = bytes;
  copy.height = 1;
  copy.depth = 1;
  return copy_box(copy, stream, waiting);
}

End at_array(CUarray array, size_t offset) {
  End end;
  end.array = array;
  end.offset = offset;
  return end;
}
End at_device(CUdeviceptr device) {
  End end;
  end.device = device;
  return end;
}
End at_host(const void* host) {
  End end;
  end.host = host;
  return end;
}

}  // namespace

extern "C" {

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(as_3d(*copy), nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return sim_cuMemcpy2D_v2(copy); }
CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(as_3d(*copy), stream, Waiting::kNot);
}
CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(*copy, nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(*copy, stream, Waiting::kNot);
}
CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(without_contexts(*copy), nullptr, Waiting::kUntilDone);
}
CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box(without_contexts(*copy), stream, Waiting::kNot);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                             size_t bytes) {
  return copy_array_line(at_array(to, to_offset), at_array(from, from_offset), bytes, nullptr,
                         Waiting::kUntilDone);
}
CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  return copy_array_line(at_device(to), at_array(from, from_offset), bytes, nullptr,
                         Waiting::kUntilDone);
}
CUresult sim_cuMemcpyAtoH_v2(void* to, CUarray from, size_t from_offset, size_t bytes) {
  return copy_array_line(at_host(to), at_array(from, from_offset), bytes, nullptr,
                         Waiting::kUntilDone);
}
CUresult sim_cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t from_offset, size_t bytes,
                                  CUstream stream) {
  return copy_array_line(at_host(to), at_array(from, from_offset), bytes, stream, Waiting::kNot);
}
CUresult sim_cuMemcpyDtoA_v2(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  return copy_array_line(at_array(to, to_offset), at_device(from), bytes, nullptr,
                         Waiting::kUntilDone);
}
CUresult sim_cuMemcpyHtoA_v2(CUarray to, size_t to_offset, const void* from, size_t bytes) {
  return copy_array_line(at_array(to, to_offset), at_host(from), bytes, nullptr,
                         Waiting::kUntilDone);
}
CUresult sim_cuMemcpyHtoAAsync_v2(CUarray to, size_t to_offset, const void* from, size_t bytes,
                                  CUstream stream) {
  return copy_array_line(at_array(to, to_offset), at_host(from), bytes, stream, Waiting::kNot);
}

// In order of the list; the first that cannot be done ends the batch.
CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed,
                                  unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (count == 0 || copies == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  // A batch has no order with the null stream: none may be given.
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = copy_of_batch(copies[i], stream);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}
CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                                     unsigned long long flags, CUstream stream) {
  return sim_cuMemcpy3DBatchAsync(count, copies, nullptr, flags, stream);
}

}  // extern "C"
