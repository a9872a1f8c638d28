// Ways: how each of the interposer's own bodies takes device memory, keeps it longer, or gives it
// back, for the test that lets every driver call behind them fail.
//
// A way is written as a program would: what it has made on the way to its last step it takes down
// again when that step fails, so that nothing must be left then. Which driver calls a way needs is
// found by running it. One way names the rows of the table that it is there for; the test asks
// that every row with a body of its own is named by one. Inside a Share with a context; one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interposer/testing/share.h"

namespace aliquot::interposer::testing {

// What a way hands out; as it was where a call has failed.
struct Made {
  unsigned long long pointer = 0x5a5a, pitch = 0x5a5a, handle = 0x5a5a;
  void* object = nullptr;
  bool operator==(const Made&) const = default;

  CUdeviceptr* address() { return &pointer; }
  template <class Handle>
  Handle* as() {
    return reinterpret_cast<Handle*>(&object);
  }
};

struct Way {
  // Calls of `take`, the last one of them first; then the first call of `give`.
  std::vector<const char*> takes, gives;
  std::function<CUresult(Made&)> take, give;
  // Nothing of the program's is left when the call fails: it is charged until the process ends.
  bool keeps_for_good = false;
};

std::vector<Way> linear_ways();
std::vector<Way> pool_ways();
std::vector<Way> physical_ways();
std::vector<Way> object_ways();
std::vector<Way> graph_ways();
std::vector<Way> context_ways();

}  // namespace aliquot::interposer::testing
