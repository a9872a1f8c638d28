// Work: what one call asks of a GPU, as the gate sees it: in which stream, and by what name its
// duration will be known.
//
// work_of() reads it from the arguments of a table row, whatever its signature: kernels are known
// by function and shape, graphs by what was noted when they were instantiated (guards_graphs.cc),
// copies and fills by row and size. Else it touches no more than the arguments and the structs they
// point to. Constant time; any thread.
#pragma once

#include <bit>
#include <string_view>
#include <type_traits>

#include "driver_abi/cuda_table.h"
#include "driver_abi/cuda_types.h"
#include "gate/estimates.h"

namespace aliquot::interposer {

struct Work {
  std::uint64_t key = 0;       // never 0
  Nanoseconds assumed_ns = 0;  // before it is measured; 0: as long as an unknown kernel
  CUstream stream = nullptr;   // never null: the default streams have handles of their own
};

inline std::uint64_t number_of(const void* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

// The default stream's own handle, so that it means the same in any of our calls.
inline CUstream own_handle(CUstream stream, bool per_thread) {
  if (stream != nullptr) return stream;
  constexpr std::uintptr_t kLegacy = CU_STREAM_LEGACY, kPerThread = CU_STREAM_PER_THREAD;
  return reinterpret_cast<CUstream>(per_thread ? kPerThread : kLegacy);
}

// Whether null means the thread's own stream in this row.
consteval bool is_per_thread(std::string_view symbol) {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}

// The last stream among the arguments; null if there is none.
inline CUstream stream_among() { return nullptr; }
template <class First, class... Rest>
CUstream stream_among(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, CUstream>) {
    const CUstream later = stream_among(rest...);
    return later != nullptr ? later : first;
  } else {
    return stream_among(rest...);
  }
}

// How much a copy or fill moves: the last count among the arguments, or what a struct says.
inline std::uint64_t bytes_in(const CUDA_MEMCPY2D_v1& copy) {
  return std::uint64_t{copy.width_bytes} * copy.height;
}
inline std::uint64_t bytes_in(const CUDA_MEMCPY2D& copy) { return copy.width_bytes * copy.height; }
inline std::uint64_t bytes_in(const CUDA_MEMCPY3D_v1& copy) {
  return std::uint64_t{copy.width_bytes} * copy.height * copy.depth;
}
inline std::uint64_t bytes_in(const CUDA_MEMCPY3D& copy) {
  return copy.width_bytes * copy.height * copy.depth;
}
inline std::uint64_t bytes_in(const CUDA_MEMCPY3D_PEER& copy) {
  return copy.width_bytes * copy.height * copy.depth;
}
template <class Argument>
concept CopyStruct = requires(Argument copy) {
  { bytes_in(*copy) } -> std::same_as<std::uint64_t>;
};
inline std::uint64_t bytes_among() { return 0; }
template <class First, class... Rest>
std::uint64_t bytes_among(First first, Rest... rest) {
  const std::uint64_t later = bytes_among(rest...);
  if (later != 0) return later;
  if constexpr (std::is_same_v<First, std::size_t> || std::is_same_v<First, unsigned>) {
    return first;
  } else if constexpr (CopyStruct<First>) {
    return first != nullptr ? bytes_in(*first) : 0;
  } else {
    return 0;
  }
}

inline Work kernel_work(CUfunction function, const std::uint32_t (&grid)[3],
                        const std::uint32_t (&block)[3], CUstream stream) {
  const gate::KernelShape shape{.function = number_of(function),
                                .grid = {grid[0], grid[1], grid[2]},
                                .block = {block[0], block[1], block[2]}};
  return {.key = gate::kernel_key(shape), .stream = stream};
}

// Anything without a better description: by row and by the size class of what it moves.
template <class... Arguments>
Work work_of(driver_abi::Cuda row, Arguments... arguments) {
  // Until measured: 10 us, and 10 bytes a nanosecond.
  const std::uint64_t bytes = bytes_among(arguments...);
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(bytes));
  return {
      .key = gate::kernel_key({.function = driver_abi::index_of(row), .grid = {size_class, 0, 0}}),
      .assumed_ns = 10 * kMicrosecond + static_cast<Nanoseconds>(bytes >> 3),
      .stream = stream_among(arguments...)};
}
// NOLINTBEGIN(readability-function-size): the driver's own parameters.
inline Work work_of(driver_abi::Cuda, CUfunction function, unsigned grid_x, unsigned grid_y,
                    unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                    CUstream stream, void**) {
  return kernel_work(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, stream);
}
inline Work work_of(driver_abi::Cuda, CUfunction function, unsigned grid_x, unsigned grid_y,
                    unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                    CUstream stream, void**, void**) {
  return kernel_work(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, stream);
}
// NOLINTEND(readability-function-size)
inline Work work_of(driver_abi::Cuda, const CUlaunchConfig* config, CUfunction function, void**,
                    void**) {
  if (config == nullptr) return kernel_work(function, {1, 1, 1}, {1, 1, 1}, nullptr);
  return kernel_work(function, {config->grid_x, config->grid_y, config->grid_z},
                     {config->block_x, config->block_y, config->block_z}, config->stream);
}
// The oldest interface: the block's shape was set on the function before.
inline Work work_of(driver_abi::Cuda, CUfunction function) {
  return kernel_work(function, {1, 1, 1}, {1, 1, 1}, nullptr);
}
inline Work work_of(driver_abi::Cuda, CUfunction function, int width, int height) {
  return kernel_work(function,
                     {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 1},
                     {1, 1, 1}, nullptr);
}
inline Work work_of(driver_abi::Cuda, CUfunction function, int width, int height, CUstream stream) {
  return kernel_work(function,
                     {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 1},
                     {1, 1, 1}, stream);
}
Work work_of(driver_abi::Cuda row, CUgraphExec graph, CUstream stream);

}  // namespace aliquot::interposer
