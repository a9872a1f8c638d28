// Arrays and mipmapped arrays: rows of elements in device memory that only copies reach. Under the
// library's lock.
#pragma once

#include <memory>
#include <vector>

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  Context* context = nullptr;
  DeviceView* device = nullptr;
  std::uint64_t base = 0;   // 0: no memory yet (sparse, deferred)
  std::uint64_t pitch = 0;  // bytes of a row
  bool owns_memory = true;  // false: a level of a mipmapped array
  std::uint64_t rows() const { return shape.height == 0 ? 1 : shape.height; }
  std::uint64_t layers() const { return shape.depth == 0 ? 1 : shape.depth; }
  std::uint64_t bytes() const { return pitch * rows() * layers(); }
};

struct Mipmap {
  Array whole;
  std::vector<CUarray> levels;
  std::uint64_t bytes = 0;
};

Array* find_array(CUarray handle);
// Bytes of one element; 0: no such format.
std::uint64_t element_bytes(CUarray_format format, unsigned channels);
void forget_arrays(const Context& context);

}  // namespace aliquot::simdriver
