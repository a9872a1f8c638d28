// The driver's libnvidia-ml as inventory calls it: by id, with errors in the driver's own words.
// For the room's own files. Any thread.
#pragma once

#include <dlfcn.h>

#include <array>
#include <optional>
#include <string>

#include "common/result.h"
#include "driver_abi/nvml_functions.h"
#include "driver_abi/real_library.h"

namespace aliquot::inventory {

using Id = driver_abi::Nvml;

template <Id kId>
struct Signature;
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  template <>                                                         \
  struct Signature<Id::symbol> {                                      \
    using Type = driver_abi::fn::symbol;                              \
  };
#include "driver_abi/nvml_entry_points.def"

inline Errc code_of(nvmlReturn_t result) {
  switch (result) {
    case NVML_ERROR_INVALID_ARGUMENT:
      return Errc::kInvalid;
    case NVML_ERROR_NO_PERMISSION:
      return Errc::kDenied;
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return Errc::kNotFound;
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_TIMEOUT:
      return Errc::kUnavailable;
    default:
      return Errc::kInternal;
  }
}

class NvmlLibrary {
 public:
  const char* load(const char* path) { return real_.load(path, &::dlsym); }

  template <Id kId, typename... Args>
  nvmlReturn_t call(Args... args) const {
    using Type = typename Signature<kId>::Type;
    const auto function = reinterpret_cast<Type>(real_.symbol(kId));
    return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(args...);
  }

  // What a call says through its last argument; nothing where the GPU or the driver has it not.
  template <Id kId, typename T = unsigned, typename... Args>
  std::optional<T> figure(nvmlDevice_t device, Args... args) const {
    T value{};
    if (call<kId>(device, args..., &value) != NVML_SUCCESS) return std::nullopt;
    return value;
  }

  template <Id kId>
  std::string text(nvmlDevice_t device) const {
    std::array<char, 256> out{};
    if (call<kId>(device, out.data(), static_cast<unsigned>(out.size())) != NVML_SUCCESS) return {};
    return out.data();
  }

  Error error(Id id, nvmlReturn_t result) const {
    const auto words =
        reinterpret_cast<Signature<Id::nvmlErrorString>::Type>(real_.symbol(Id::nvmlErrorString));
    const std::string why = words == nullptr ? std::to_string(result) : words(result);
    return {code_of(result), std::string(driver_abi::entry(id).symbol) + ": " + why};
  }

 private:
  driver_abi::RealNvml real_;
};

}  // namespace aliquot::inventory
