// FakeNvml: a libnvidia-ml.so.1 for tests of the interposer alone: four GPUs and their processes.
//
// Every row of the table is exported. Calls that tell GPUs or processes apart have a meaning; all
// others count and succeed. Any call can be told to fail. One thread at a time.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver_abi/nvml_types.h"

namespace aliquot::interposer::testing {

struct FakeNvmlGpu {
  unsigned index = 0;
  std::string uuid, serial, bus_id;
  std::uint64_t total_bytes = 0, used_bytes = 0;
  std::vector<std::string> links;  // bus id at the other end of each NVLink
};

struct FakeNvmlProcess {
  unsigned gpu = 0, pid = 0;
  std::uint64_t bytes = 0;
  unsigned sm_percent = 0;
};

struct FakeNvml {
  std::vector<FakeNvmlGpu> gpus;
  std::vector<FakeNvmlProcess> processes;    // of every tenant, with the host's pids
  std::map<std::string, nvmlReturn_t> fail;  // the next call of this name, once
  std::map<std::string, unsigned> calls;
  unsigned users = 0;  // inits without their shutdown

  virtual void reset() = 0;
  virtual ~FakeNvml() = default;
};

// Of the fake that the interposer has loaded (or would load) from this path.
inline FakeNvml& fake_nvml_at(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<FakeNvml* (*)()>(dlsym(handle, "aliquot_fake_nvml"))();
}

}  // namespace aliquot::interposer::testing
