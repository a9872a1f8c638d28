// FakeDriver: a libcuda.so.1 for tests of the interposer alone: bookkeeping without time or data.
//
// Every row of the table is exported. The calls that take memory keep exact books, so that a test
// can compare the share's account with what the driver believes; all others count and succeed. Any
// call can be told to fail. Tests reach it with `fake()`; one thread at a time changes settings.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "driver_abi/cuda_types.h"

namespace aliquot::interposer::testing {

struct FakeDevice {
  CUuuid uuid{};
  std::uint64_t total_bytes = 0;
};

struct FakeDriver {
  std::mutex mutex;
  std::vector<FakeDevice> machine;  // what is there; a process sees what the variables name
  int version = 13000;
  std::map<std::string, CUresult> fail;              // the next call of this name
  bool fail_for_good = false;                        // else once, and the one after it works
  std::map<std::string, std::uint64_t> let_through;  // so many calls of it before that
  std::map<std::string, std::uint64_t> calls;        // since reset
  std::uint64_t array_overhead_bytes = 0;            // beyond an array's elements
  std::uint64_t context_bytes = 0;                   // each context takes
  unsigned other_users = 0;                          // of any context: cuCtxDetach takes one off
  std::uint64_t pool_block_bytes = 32u << 20;        // a pool grows by whole blocks
  std::uint64_t pitch_granule = 512;
  bool work_ends = true;                          // at once; else when finish_work() is called
  float kernel_ms = 0.01F;                        // what an event pair says of any work
  std::map<CUstream, CUcontext> stream_contexts;  // else the current one
  std::vector<int> visible;                       // set by cuInit: indices into machine

  // Device bytes that are taken now.
  virtual std::uint64_t taken_bytes() = 0;
  // What was launched until now has ended.
  virtual void finish_work() = 0;
  virtual void reset() = 0;
  virtual ~FakeDriver() = default;
};

// The fake that is loaded from this path; loads it if need be.
inline FakeDriver& fake_at(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<FakeDriver* (*)()>(dlsym(handle, "aliquot_fake_driver"))();
}

}  // namespace aliquot::interposer::testing
