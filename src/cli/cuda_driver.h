// The driver API as this room calls it: rows of a libcuda that was loaded by its path, with errors
// in the driver's own words. Any thread.
#pragma once

#include <dlfcn.h>

#include <string>

#include "common/result.h"
#include "driver_abi/cuda_functions.h"

namespace aliquot::cli {

using driver_abi::Cuda;

// Spins for a number of nanoseconds of the GPU's own timer; the simulator knows it by its name.
inline constexpr const char* kSpinPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry aliquot_spin(.param .u64 duration_ns)
{
  .reg .pred %done;
  .reg .u64 %now, %start, %passed, %wanted;
  ld.param.u64 %wanted, [duration_ns];
  mov.u64 %start, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %start;
  setp.lt.u64 %done, %passed, %wanted;
  @%done bra again;
  ret;
}
)";

class CudaDriver {
 public:
  static Result<CudaDriver> load(const std::string& path) {
    CudaDriver driver;
    if (const char* reason = driver.real_.load(path.c_str(), &::dlsym))
      return Error{Errc::kUnavailable, "load " + path + ": " + reason};
    return driver;
  }

  // Calls row kId. A driver without the row answers as one that does not support it.
  template <Cuda kId, typename... Arguments>
  CUresult call(Arguments... arguments) const {
    const auto function = driver_abi::function<kId>(real_);
    return function == nullptr ? CUDA_ERROR_NOT_SUPPORTED : function(arguments...);
  }

  std::string name_of(CUresult result) const {
    const char* name = nullptr;
    call<Cuda::cuGetErrorName>(result, &name);
    return name != nullptr ? name : "error " + std::to_string(static_cast<int>(result));
  }

  Error error(const char* what, CUresult result) const {
    return {Errc::kUnavailable, std::string(what) + ": " + name_of(result)};
  }

 private:
  driver_abi::RealCuda real_;
};

}  // namespace aliquot::cli
