// Copies and fills: what they do to data, and how they go into streams. Under the library's lock.
#pragma once

#include "simdriver/cuda/work.h"

namespace aliquot::simdriver {

// One side of a copy, whatever it is made of.
struct Side {
  bool device = false;
  std::uint64_t address = 0;  // of the first byte; the host's too
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;  // bytes from one layer to the next
  const DeviceView* gpu = nullptr;
};

// A box of bytes.
struct Box {
  Side from;
  Side to;
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t depth = 1;
  std::uint64_t bytes() const { return width * height * depth; }
};

// A pointer that the program gave: device memory, else the host's.
Side side_of(std::uint64_t address);
CUresult check_side(const Side& side, const Box& box);

CUresult box_of(const CUDA_MEMCPY3D& copy, Box& box);
CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D& copy);

// Moves the bytes now; false: no memory of the host left.
bool move_bytes(const Box& box);
CommandArgs copy_command(const Box& box);

CUresult submit_copy(Stream& stream, const Box& box);

// As cuMemsetD2D: `height` rows of `width` elements.
struct Fill {
  std::uint64_t to = 0;
  std::uint64_t pitch = 0;
  Pattern pattern;
  std::uint64_t width = 0;
  std::uint64_t height = 1;
};
CUresult check_fill(const Fill& fill);
bool fill_bytes(const Fill& fill);
CUresult submit_fill(Stream& stream, const Fill& fill);

}  // namespace aliquot::simdriver
