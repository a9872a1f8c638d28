#include "driver_abi/real_library.h"

#include <dlfcn.h>

namespace aliquot::driver_abi {

const char* load_symbols(const char* path, SymbolLookup lookup, std::span<const Entry> entries,
                         std::span<void*> pointers) {
  // A bare name would be searched for, and could find the library that asks.
  if (path == nullptr || path[0] != '/') return "the path of a real library must be absolute";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return reason != nullptr ? reason : "dlopen failed and does not say why";
  }
  bool any = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    pointers[i] = lookup(handle, entries[i].c_str());
    any = any || pointers[i] != nullptr;
  }
  if (any) return nullptr;
  dlclose(handle);
  return "not the expected library: it exports none of the known symbols";
}

}  // namespace aliquot::driver_abi
