// The libraries behind us: one slot per table row, and calls through them.
//
// `real::cuMemAlloc_v2(...)` calls the driver's own function. A slot needs no check before the
// call: until the library is loaded it leads to the resolver, afterwards to the function, to
// "not found" where this driver is too old for it, or to "no device" where the lease was refused.
// The libraries are loaded once, by the absolute paths of the grant, with all their symbols.
//
// Any thread. Loading takes a lock; calls do not.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "driver_abi/cuda_functions.h"
#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_functions.h"
#include "driver_abi/nvml_table.h"
#include "interposer/tenant.h"

extern "C" {
extern void* aliquot_cuda_slots[];        // NOLINT: filled by the assembler
extern void* const aliquot_cuda_hooks[];  // NOLINT: filled by the assembler
extern void* aliquot_nvml_slots[];        // NOLINT: filled by the assembler
extern void* const aliquot_nvml_hooks[];  // NOLINT: filled by the assembler
}

namespace aliquot::interposer {

enum class Library : unsigned { kCuda, kNvml };

enum LoadState : unsigned { kNotTried, kLoaded, kLoadFailed };
extern constinit std::atomic<unsigned> load_states[2];  // NOLINT: by Library
bool attach_and_load(Library library);

// Loaded alone is not enough: a forked child has the library from its parent, but no lease yet.
[[gnu::always_inline]] inline bool is_loaded(Library library) {
  const auto& state = load_states[static_cast<unsigned>(library)];
  return state.load(std::memory_order_acquire) == kLoaded && tenant().stands();
}
// Attaches, and loads the real library, if that is still to be done. False: the lease was refused,
// or the library cannot be loaded (said on stderr).
inline bool load(Library library) { return is_loaded(library) || attach_and_load(library); }
// Tells a later load to try again. For cuInit after a failure.
void retry_load(Library library);
// In the child of a fork.
void forget_load_lock();

// What a library's names lead to; null for a name that is no row of its table.
struct Named {
  Library library = Library::kCuda;
  std::size_t row = 0;
  void* hook = nullptr;  // our exported function
};
Named named(std::string_view symbol);
void* handle_of(Library library);  // of the loaded real library; null before
// Whether the loaded real library has the row's function.
bool has(Library library, std::size_t row);
inline bool has(driver_abi::Cuda id) { return has(Library::kCuda, driver_abi::index_of(id)); }
inline void* hook_of(driver_abi::Cuda id) { return aliquot_cuda_hooks[driver_abi::index_of(id)]; }
inline void* slot_of(driver_abi::Cuda id) {
  return __atomic_load_n(&aliquot_cuda_slots[driver_abi::index_of(id)], __ATOMIC_RELAXED);
}

inline void* slot_of(driver_abi::Nvml id) {
  return __atomic_load_n(&aliquot_nvml_slots[driver_abi::index_of(id)], __ATOMIC_RELAXED);
}
inline bool has(driver_abi::Nvml id) { return has(Library::kNvml, driver_abi::index_of(id)); }

namespace real {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)                        \
  inline CUresult symbol params {                                                            \
    return reinterpret_cast<driver_abi::fn::symbol>(slot_of(driver_abi::Cuda::symbol)) args; \
  }
#include "driver_abi/cuda_entry_points.def"
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)                        \
  inline driver_abi::NvmlResult<driver_abi::Nvml::symbol> symbol params {                    \
    return reinterpret_cast<driver_abi::fn::symbol>(slot_of(driver_abi::Nvml::symbol)) args; \
  }
#include "driver_abi/nvml_entry_points.def"
}  // namespace real

}  // namespace aliquot::interposer
