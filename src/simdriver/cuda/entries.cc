// The exported functions of the simulated libcuda.so.1: one per row of the table.
//
// Each goes through enter(): is the driver initialised, shall this call fail on command, is it the
// per-thread-stream form. Then its body; a _ptsz or _ptds row without a body of its own uses that
// of the plain symbol with the thread's stream as the null stream.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "driver_abi/cuda_table.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/call_cost.h"
#include "simdriver/cuda/entries.h"
#include "simdriver/cuda/failures.h"
#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {
namespace {

using driver_abi::kCudaCount;
using driver_abi::kCudaEntries;

struct Body {
  void* function = nullptr;
  bool per_thread = false;
};

constexpr std::array kBeforeInit = std::to_array<std::string_view>(
    {"cuInit", "cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetErrorName",
     "cuGetErrorString", "cuGetExportTable"});

struct Entries {
  std::array<Body, kCudaCount> bodies;
  std::array<bool, kCudaCount> before_init{};
};

void share_plain_bodies(Entries& entries) {
  for (std::size_t i = 0; i < kCudaCount; ++i) {
    const std::string_view symbol = kCudaEntries[i].symbol;
    const bool per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
    entries.bodies[i].per_thread = per_thread;
    if (!per_thread || entries.bodies[i].function != nullptr) continue;
    const auto plain = driver_abi::cuda_row(symbol.substr(0, symbol.size() - 5));
    if (plain) entries.bodies[i].function = entries.bodies[driver_abi::index_of(*plain)].function;
  }
}

const Entries& entries() {
  static const Entries* const made = [] {
    auto* table = new Entries;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    std::size_t i = 0;
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  table->bodies[i++].function = reinterpret_cast<void*>(&sim_##symbol);
#include "driver_abi/cuda_entry_points.def"
    share_plain_bodies(*table);
    for (const std::string_view symbol : kBeforeInit) {
      table->before_init[driver_abi::index_of(*driver_abi::cuda_row(symbol))] = true;
    }
    return table;
  }();
  return *made;
}

// Whether the call may go on; else what it answers.
[[gnu::hot]] CUresult enter(std::size_t row) {
  const Entries& all = entries();
  Library& lib = library();
  if (lib.forked()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!lib.initialised() && !all.before_init[row]) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult failure = injected_failure(kCudaEntries[row].symbol, lib.machine_page())) {
    say(Say::kDebug, "%s fails on command: %d", kCudaEntries[row].c_str(), failure);
    return failure;
  }
  if (all.bodies[row].function == nullptr) {
    say(Say::kDebug, "%s is not supported", kCudaEntries[row].c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// What a call answers, once it has taken the time it takes; failures are said where somebody wants
// to hear of them.
[[gnu::hot]] CUresult said(std::size_t row, CUresult result) {
  pay();
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    say(Say::kDebug, "%s: %d", kCudaEntries[row].c_str(), result);
  }
  return result;
}

// The null stream's meaning for the time of one call.
class StreamMode {
 public:
  explicit StreamMode(std::size_t row) : before_(per_thread_streams()) {
    per_thread_streams() = entries().bodies[row].per_thread;
  }
  StreamMode(const StreamMode&) = delete;
  StreamMode& operator=(const StreamMode&) = delete;
  ~StreamMode() { per_thread_streams() = before_; }

 private:
  bool before_;
};

}  // namespace
}  // namespace aliquot::simdriver

// The trailing underscores keep clear of the table's parameter names.
extern "C" {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)                         \
  __attribute__((visibility("default"))) CUresult symbol params {                             \
    using namespace aliquot::simdriver; /* NOLINT(google-build-using-namespace) */            \
    constexpr auto kRow_ = aliquot::driver_abi::index_of(aliquot::driver_abi::Cuda::symbol);  \
    if (const CUresult refused_ = enter(kRow_)) return refused_;                              \
    const StreamMode stream_mode_(kRow_);                                                     \
    return said(kRow_,                                                                        \
                reinterpret_cast<CUresult(*) params>(entries().bodies[kRow_].function) args); \
  }
#include "driver_abi/cuda_entry_points.def"
}

namespace aliquot::simdriver {

void* exported_function(driver_abi::Cuda id) {
  // clang-format off
  static const auto* const functions = new std::array<void*, kCudaCount>{  // NOLINT: for ever
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  reinterpret_cast<void*>(&symbol),
#include "driver_abi/cuda_entry_points.def"
  };
  // clang-format on
  return (*functions)[driver_abi::index_of(id)];
}

}  // namespace aliquot::simdriver
