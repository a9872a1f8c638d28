// RealLibrary: a vendor library opened by absolute path, with a pointer per row of its table.
//
// Rows that the library does not export are null: an older driver, a newer name. Who may load
// which path is the caller's business, and so is asking before calling a null pointer. Leans on
// libc only, throws nothing, allocates nothing beyond what dlopen itself does, and stays loaded
// until the process ends: a driver is never unloaded under the threads it started.
//
// Threads: `load` once, before others use the object; reading is free for all afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"

namespace aliquot::driver_abi {

// How a symbol is found in a handle. Given by the caller because a library that itself exports
// dlsym must not look itself up here.
using SymbolLookup = void* (*)(void* handle, const char* symbol);

// Opens `path` and looks every entry up. Null when that worked, else what went wrong, as text that
// holds until the thread's next call to the dynamic linker. `pointers` has one place per entry.
[[nodiscard]] const char* load_symbols(const char* path, SymbolLookup lookup,
                                       std::span<const Entry> entries, std::span<void*> pointers);

template <typename Id, const auto& kEntries>
class RealLibrary {
 public:
  // Null when it worked, else the reason; a library without any known symbol is refused too.
  [[nodiscard]] const char* load(const char* path, SymbolLookup lookup) {
    const char* reason = load_symbols(path, lookup, kEntries, pointers_);
    loaded_ = reason == nullptr;
    return reason;
  }
  bool loaded() const { return loaded_; }
  void* symbol(Id id) const { return pointers_[index_of(id)]; }

 private:
  std::array<void*, static_cast<std::size_t>(Id::kCount)> pointers_{};
  bool loaded_ = false;
};

using RealCuda = RealLibrary<Cuda, kCudaEntries>;
using RealNvml = RealLibrary<Nvml, kNvmlEntries>;

}  // namespace aliquot::driver_abi
