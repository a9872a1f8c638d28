// The fake driver's books, shared by its source files. Under FakeDriver::mutex.
#pragma once

#include <map>
#include <set>

#include "driver_abi/cuda_table.h"
#include "interposer/testing/fake_driver.h"

namespace aliquot::interposer::testing {

// The fake's handles are numbers: nothing lies behind them.
template <class Handle>
Handle handle_of(std::uint64_t name) {
  return reinterpret_cast<Handle>(name);
}

struct FakeContext {
  int device = 0;
  bool primary = false;
};
struct FakeBlock {
  std::uint64_t bytes = 0;
  CUcontext context = nullptr;  // what it goes down with
  CUmemoryPool pool = nullptr;
};
struct FakePool {
  int device = 0;
  bool alive = true, on_host = false;
  std::uint64_t reserved = 0, used = 0;
};
struct FakePhysical {
  std::uint64_t bytes = 0;
  unsigned references = 1;
  bool on_device = true;
};
struct FakeObject {  // arrays, modules, imported memory
  std::uint64_t bytes = 0;
  CUcontext context = nullptr;
};
struct FakeGraph {
  std::vector<CUDA_MEM_ALLOC_NODE_PARAMS> nodes;
  std::vector<CUDA_KERNEL_NODE_PARAMS> kernels;  // after those, by handle too
};

class Books final : public FakeDriver {
 public:
  std::uint64_t taken_bytes() override;
  void finish_work() override;
  void reset() override;

  // Counts the call; the error it shall end with.
  CUresult enter(const char* name);
  std::uint64_t fresh_name() { return next_ += 0x1000; }
  std::uint64_t fresh_short_name() { return next_short_ += 0x1000; }  // of 32 bits
  bool has_context(CUcontext context) { return contexts.contains(context); }
  void end_context(CUcontext context);
  CUmemoryPool default_pool(int device);

  std::map<CUcontext, FakeContext> contexts;
  std::map<int, std::pair<CUcontext, unsigned>> primaries;  // device -> context, retains
  std::map<CUdeviceptr, FakeBlock> blocks;
  std::map<CUmemoryPool, FakePool> pools;
  std::map<CUmemGenericAllocationHandle, FakePhysical> physical;
  std::map<CUdeviceptr, std::pair<std::uint64_t, CUmemGenericAllocationHandle>> mappings;
  // What multicast objects and sparse arrays keep.
  std::map<std::pair<CUmemGenericAllocationHandle, std::uint64_t>, CUmemGenericAllocationHandle>
      bound;
  std::multimap<CUarray, CUmemGenericAllocationHandle> tiles;
  std::map<std::uint64_t, FakeObject> objects;
  std::map<std::uint64_t, FakeGraph> graphs;
  std::map<std::uint64_t, std::uint64_t> instantiated;  // bytes its nodes need
  std::uint64_t graph_kept_bytes = 0;
  struct Recorded {
    CUstream stream = nullptr;
    std::uint64_t number = 0;
  };
  std::map<CUevent, Recorded> events;
  std::uint64_t recorded = 0, finished = 0;
  std::vector<CUcontext> pushed;  // by one thread at a time
  std::set<CUstream> capturing;
  std::map<std::pair<CUcontext, int>, std::size_t> limits;
  bool initialised = false;

 private:
  std::uint64_t next_ = 0x7f00'0000'0000;
  std::uint64_t next_short_ = 0x1000'0000;
};

Books& books();
CUcontext& current_context();  // of this thread
std::string uuid_text(const CUuuid& uuid);
// The fake's own function of a row.
void* exported(driver_abi::Cuda id);

}  // namespace aliquot::interposer::testing
