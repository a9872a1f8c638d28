// The fake libnvidia-ml's state, shared by its source files.
#pragma once

#include "interposer/testing/fake_nvml.h"

namespace aliquot::interposer::testing {

class NvmlBooks final : public FakeNvml {
 public:
  NvmlBooks() { reset(); }
  void reset() override;
  // Counts the call; the error it shall end with.
  nvmlReturn_t enter(const char* name);
  nvmlDevice_t handle(unsigned gpu) { return reinterpret_cast<nvmlDevice_t>(&gpus[gpu]); }
  FakeNvmlGpu& gpu(nvmlDevice_t device) { return *reinterpret_cast<FakeNvmlGpu*>(device); }
};

NvmlBooks& nvml_books();

}  // namespace aliquot::interposer::testing
