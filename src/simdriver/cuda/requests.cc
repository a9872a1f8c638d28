#include "simdriver/cuda/requests.h"

#include <utility>

namespace aliquot::simdriver {

CUresult request(Lock& lock, Stream& stream, Operation operation, Waiting waiting) {
  if (waiting == Waiting::kNot) return enqueue(stream, std::move(operation));
  if (const CUresult result = refuse_capture(stream)) return result;
  if (const CUresult result = submit_operation(stream, operation)) return result;
  return synchronise(lock, stream);
}

void describe_line(const Box& box, CUDA_MEMCPY3D& as_given) {
  as_given = {};
  as_given.width_bytes = box.width;
  as_given.height = 1;
  as_given.depth = 1;
  const auto type = [](const Side& side) {
    return side.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  };
  as_given.from_type = type(box.from);
  as_given.to_type = type(box.to);
  if (box.from.device) {
    as_given.from_device = box.from.address;
  } else {
    as_given.from_host = reinterpret_cast<const void*>(box.from.address);
  }
  if (box.to.device) {
    as_given.to_device = box.to.address;
  } else {
    as_given.to_host = reinterpret_cast<void*>(box.to.address);
  }
  as_given.from_pitch = as_given.to_pitch = box.width;
}

}  // namespace aliquot::simdriver
