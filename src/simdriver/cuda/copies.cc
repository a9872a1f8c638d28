#include "simdriver/cuda/copies.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simdriver/cuda/arrays.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kBounceBytes = 1u << 20;

bool move_row(bool from_device, std::uint64_t from, bool to_device, std::uint64_t to,
              std::uint64_t bytes) {
  Memory& memory = library().memory();
  if (from_device && !to_device) {
    return memory.load(reinterpret_cast<void*>(to), from, bytes) == CUDA_SUCCESS;
  }
  if (!from_device && to_device) {
    return memory.store(to, reinterpret_cast<const void*>(from), bytes) == CUDA_SUCCESS;
  }
  if (!from_device) {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  }
  std::vector<std::byte> bounce(std::min(bytes, kBounceBytes));
  for (std::uint64_t done = 0; done < bytes; done += bounce.size()) {
    const std::uint64_t part = std::min<std::uint64_t>(bytes - done, bounce.size());
    if (memory.load(bounce.data(), from + done, part) != CUDA_SUCCESS ||
        memory.store(to + done, bounce.data(), part) != CUDA_SUCCESS) {
      return false;
    }
  }
  return true;
}

// What cuMemcpy3D says of one side, whatever its version.
struct Described {
  int type;
  std::uint64_t host;
  std::uint64_t device;
  CUarray array;
  std::uint64_t x;
  std::uint64_t y;
  std::uint64_t z;
  std::uint64_t pitch;
  std::uint64_t height;
};

CUresult resolve(const Described& described, std::uint64_t width, std::uint64_t rows, Side& side) {
  if (described.type == CU_MEMORYTYPE_ARRAY) {
    const Array* array = find_array(described.array);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    side.device = true;
    side.gpu = array->device;
    side.pitch = array->pitch;
    side.slice = array->pitch * array->rows();
    side.address = array->base;
    const bool inside = described.x + width <= array->pitch && described.y + rows <= array->rows();
    if (!inside) return CUDA_ERROR_INVALID_VALUE;
  } else {
    const bool host = described.type == CU_MEMORYTYPE_HOST;
    const std::uint64_t address = host ? described.host : described.device;
    side = side_of(address);
    if (described.type == CU_MEMORYTYPE_DEVICE && !side.device &&
        library().memory().find_host(reinterpret_cast<const void*>(address)) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    side.pitch = described.pitch != 0 ? described.pitch : width;
    if (described.pitch != 0 && described.pitch < width) return CUDA_ERROR_INVALID_VALUE;
    side.slice = side.pitch * (described.height != 0 ? described.height : rows);
  }
  side.address += described.z * side.slice + described.y * side.pitch + described.x;
  return CUDA_SUCCESS;
}

CopyKind kind_of(const Box& box) {
  if (box.from.device && box.to.device) {
    return box.from.gpu == box.to.gpu ? CopyKind::kDeviceToDevice : CopyKind::kPeer;
  }
  if (box.from.device) return CopyKind::kDeviceToHost;
  return box.to.device ? CopyKind::kHostToDevice : CopyKind::kHost;
}

}  // namespace

Side side_of(std::uint64_t address) {
  Side side;
  side.address = address;
  Memory& memory = library().memory();
  side.device = memory.is_device_address(address);
  if (const Allocation* allocation = side.device ? memory.find(address) : nullptr) {
    side.gpu = allocation->device;
  }
  return side;
}

CUresult check_side(const Side& side, const Box& box) {
  if (!side.device) {
    return side.address == 0 && box.bytes() != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  if (box.bytes() == 0) return CUDA_SUCCESS;
  const std::uint64_t end =
      (box.depth - 1) * side.slice + (box.height - 1) * side.pitch + box.width;
  return library().memory().covers(side.address, end) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult box_of(const CUDA_MEMCPY3D& copy, Box& box) {
  const auto number = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
  box.width = copy.width_bytes;
  box.height = copy.height;
  box.depth = copy.depth;
  const Described from{copy.from_type,  number(copy.from_host), copy.from_device,
                       copy.from_array, copy.from_x_bytes,      copy.from_y,
                       copy.from_z,     copy.from_pitch,        copy.from_height};
  const Described to{copy.to_type,  number(copy.to_host), copy.to_device,
                     copy.to_array, copy.to_x_bytes,      copy.to_y,
                     copy.to_z,     copy.to_pitch,        copy.to_height};
  if (const CUresult result = resolve(from, box.width, box.height, box.from)) return result;
  if (const CUresult result = resolve(to, box.width, box.height, box.to)) return result;
  if (const CUresult result = check_side(box.from, box)) return result;
  return check_side(box.to, box);
}

CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D wide{};
  wide.from_x_bytes = copy.from_x_bytes;
  wide.from_y = copy.from_y;
  wide.from_type = copy.from_type;
  wide.from_host = copy.from_host;
  wide.from_device = copy.from_device;
  wide.from_array = copy.from_array;
  wide.from_pitch = copy.from_pitch;
  wide.to_x_bytes = copy.to_x_bytes;
  wide.to_y = copy.to_y;
  wide.to_type = copy.to_type;
  wide.to_host = copy.to_host;
  wide.to_device = copy.to_device;
  wide.to_array = copy.to_array;
  wide.to_pitch = copy.to_pitch;
  wide.width_bytes = copy.width_bytes;
  wide.height = copy.height;
  wide.depth = 1;
  return wide;
}

bool move_bytes(const Box& box) {
  const bool flat = box.height * box.depth == 1 ||
                    (box.from.pitch == box.width && box.to.pitch == box.width && box.depth == 1);
  if (flat) {
    return move_row(box.from.device, box.from.address, box.to.device, box.to.address, box.bytes());
  }
  for (std::uint64_t z = 0; z < box.depth; ++z) {
    for (std::uint64_t y = 0; y < box.height; ++y) {
      const std::uint64_t from = box.from.address + z * box.from.slice + y * box.from.pitch;
      const std::uint64_t to = box.to.address + z * box.to.slice + y * box.to.pitch;
      if (!move_row(box.from.device, from, box.to.device, to, box.width)) return false;
    }
  }
  return true;
}

CommandArgs copy_command(const Box& box) {
  return {box.bytes(), static_cast<std::uint64_t>(kind_of(box))};
}

CUresult submit_copy(Stream& stream, const Box& box) {
  return submit(stream, CommandOp::kCopy, copy_command(box), [box] { return move_bytes(box); });
}

CUresult check_fill(const Fill& fill) {
  const std::uint64_t row = fill.width * fill.pattern.width;
  if (fill.to % fill.pattern.width != 0) return CUDA_ERROR_INVALID_VALUE;
  if (fill.height > 1 && fill.pitch < row) return CUDA_ERROR_INVALID_VALUE;
  if (row == 0 || fill.height == 0) return CUDA_SUCCESS;
  Memory& memory = library().memory();
  const std::uint64_t end = (fill.height - 1) * fill.pitch + row;
  if (memory.is_device_address(fill.to)) {
    return memory.covers(fill.to, end) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return memory.find_host(reinterpret_cast<const void*>(fill.to)) != nullptr
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

bool fill_bytes(const Fill& fill) {
  Memory& memory = library().memory();
  const std::uint64_t row = fill.width * fill.pattern.width;
  for (std::uint64_t y = 0; y < fill.height; ++y) {
    const std::uint64_t to = fill.to + y * fill.pitch;
    if (memory.is_device_address(to)) {
      if (memory.fill(to, row, fill.pattern) != CUDA_SUCCESS) return false;
      continue;
    }
    auto* at = reinterpret_cast<std::byte*>(to);
    for (std::uint64_t i = 0; i < row; i += fill.pattern.width) {
      std::memcpy(at + i, &fill.pattern.value, fill.pattern.width);
    }
  }
  return true;
}

CUresult submit_fill(Stream& stream, const Fill& fill) {
  const std::uint64_t bytes = fill.width * fill.pattern.width * fill.height;
  return submit(stream, CommandOp::kFill, {bytes}, [fill] { return fill_bytes(fill); });
}

}  // namespace aliquot::simdriver
