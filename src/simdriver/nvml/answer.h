// How the bodies of NVML functions answer: check what every function checks, then fill outputs.
// Any thread; see library.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "driver_abi/nvml_types.h"
#include "simdriver/nvml/dynamics.h"
#include "simdriver/nvml/library.h"

namespace aliquot::simdriver::nvml {

// fn(Held) if the library is initialised.
template <typename Fn>
nvmlReturn_t with_library(Fn fn) {
  const Library::Held held(Library::instance());
  return held.running() ? fn(held) : NVML_ERROR_UNINITIALIZED;
}

// fn(Gpu) if `device` is a GPU of ours.
template <typename Fn>
nvmlReturn_t with_gpu(nvmlDevice_t device, Fn fn) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    const std::optional<Gpu> gpu = held.gpu(device);
    return gpu ? fn(*gpu) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

// fn(Gpu, GpuReading) with what the GPU is doing now; a lost GPU answers that it is.
template <typename Fn>
nvmlReturn_t with_reading(nvmlDevice_t device, Fn fn) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    GpuReading reading;
    const nvmlReturn_t result = gpu.telemetry.read(gpu.index, reading);
    if (result != NVML_SUCCESS) return result;
    if (reading.figures.lost != 0) return NVML_ERROR_GPU_IS_LOST;
    return fn(gpu, std::as_const(reading));
  });
}

// *out = value(Gpu), of what does not change.
template <typename T, typename Fn>
nvmlReturn_t tell(nvmlDevice_t device, T* out, Fn value) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *out = static_cast<T>(value(gpu));
    return NVML_SUCCESS;
  });
}

// *out = value(Gpu, GpuTelemetry), of what does.
template <typename T, typename Fn>
nvmlReturn_t tell_now(nvmlDevice_t device, T* out, Fn value) {
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *out = static_cast<T>(value(gpu, reading.figures));
    return NVML_SUCCESS;
  });
}

// *out = value(Dynamics).
template <typename T, typename Fn>
nvmlReturn_t tell_dynamics(nvmlDevice_t device, T* out, Fn value) {
  return tell_now(device, out, [&](const Gpu& gpu, const GpuTelemetry& now) {
    return value(dynamics_of(gpu.model(), now));
  });
}

inline nvmlReturn_t copy_text(std::string_view text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return NVML_SUCCESS;
}

// A text into a char array that is known to be long enough.
template <std::size_t kLength>
void put_text(std::string_view text, char (&out)[kLength]) {
  std::memset(out, 0, kLength);
  text.copy(out, kLength - 1);
}

template <typename Fn>
nvmlReturn_t tell_text(nvmlDevice_t device, char* out, unsigned length, Fn text) {
  return with_gpu(device, [&](const Gpu& gpu) { return copy_text(text(gpu), out, length); });
}

// NVML's lists: *count says how much room there is and is set to how many there are.
template <typename Items, typename T>
nvmlReturn_t copy_list(const Items& items, unsigned* count, T* out) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned room = *count;
  *count = static_cast<unsigned>(items.size());
  if (room < items.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (out == nullptr) return items.empty() ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  std::copy(items.begin(), items.end(), out);
  return NVML_SUCCESS;
}

// Structs that carry their version: true when it is the one that this body fills.
template <typename T>
bool has_version(const T* versioned, unsigned version) {
  return versioned->version == driver_abi::nvml_struct_version<T>(version);
}

// The check that every body of a versioned struct begins with.
template <typename T>
nvmlReturn_t check_version(const T* versioned, unsigned version) {
  if (versioned == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return has_version(versioned, version) ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

}  // namespace aliquot::simdriver::nvml
