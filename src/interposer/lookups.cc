#include "interposer/lookups.h"

#include <dlfcn.h>

#include <string_view>

#include "interposer/elf_lookup.h"
#include "interposer/inside.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using Dlvsym = void* (*)(void* handle, const char* name, const char* version);

void* no_dlsym(void*, const char*) { return nullptr; }
void* no_dlvsym(void*, const char*, const char*) { return nullptr; }

// glibc 2.34 moved libdl into libc; musl's libc is its loader.
void* find_in_libc(const char* name) {
  for (const char* soname : {"libc.so.6", "libdl.so.2", "libc.musl-x86_64.so.1"})
    if (void* found = find_loaded_symbol(soname, name)) return found;
  return nullptr;
}

constexpr const char* kSonames[] = {"libcuda.so.1", "libnvidia-ml.so.1"};
const char* soname_of(Library library) { return kSonames[static_cast<unsigned>(library)]; }

bool lies_in_a_driver(const void* address) {
  for (const char* soname : kSonames)
    if (lies_in_object(address, soname)) return true;
  return false;
}

}  // namespace
}  // namespace aliquot::interposer

extern "C" {
// entry_stubs.S jumps through these.
[[gnu::visibility("hidden")]] void* aliquot_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] void* aliquot_real_dlvsym = nullptr;

struct LookupDecision {
  void* answer;  // null: ask libc
  void* handle;
};
[[gnu::visibility("hidden")]] LookupDecision aliquot_decide_lookup(void* handle, const char* name,
                                                                   const char* version,
                                                                   const void* caller);
}

namespace aliquot::interposer {

Dlsym libc_dlsym() {
  void* found = __atomic_load_n(&aliquot_real_dlsym, __ATOMIC_ACQUIRE);
  if (found == nullptr) {  // several threads may do this; all find the same
    void* versioned = find_in_libc("dlvsym");
    if (versioned == nullptr) versioned = reinterpret_cast<void*>(&no_dlvsym);
    __atomic_store_n(&aliquot_real_dlvsym, versioned, __ATOMIC_RELEASE);
    found = find_in_libc("dlsym");
    if (found == nullptr) found = reinterpret_cast<void*>(&no_dlsym);
    __atomic_store_n(&aliquot_real_dlsym, found, __ATOMIC_RELEASE);
  }
  return reinterpret_cast<Dlsym>(found);
}

namespace {

// What libc answers; with RTLD_NEXT it would answer for us, so there the question is whether a
// driver is loaded at all.
void* libc_answer(const Named& row, void* handle, const char* name, const char* version) {
  if (handle == RTLD_NEXT) return find_loaded_symbol(soname_of(row.library), name);
  const Dlsym plain = libc_dlsym();
  if (version == nullptr) return plain(handle, name);
  return reinterpret_cast<Dlvsym>(aliquot_real_dlvsym)(handle, name, version);
}

LookupDecision decide(void* handle, const char* name, const char* version, const void* caller) {
  const LookupDecision as_asked{nullptr, handle};
  libc_dlsym();
  if (name == nullptr) return as_asked;
  const std::string_view symbol(name);
  if (!symbol.starts_with("cu") && !symbol.starts_with("nvml")) return as_asked;
  const Named row = named(symbol);
  if (row.hook == nullptr || Inside::now() || lies_in_a_driver(caller)) return as_asked;
  const Inside inside;
  const void* found = libc_answer(row, handle, name, version);
  if (found == nullptr) return as_asked;
  if (found != row.hook)
    return lies_in_object(found, soname_of(row.library)) ? LookupDecision{row.hook, nullptr}
                                                         : as_asked;
  // We stand in the driver's place: a name that the driver lacks must not be there. libc then
  // says so about the driver, and sets dlerror.
  if (load(row.library) && !has(row.library, row.row)) return {nullptr, handle_of(row.library)};
  return {row.hook, nullptr};
}

}  // namespace
}  // namespace aliquot::interposer

LookupDecision aliquot_decide_lookup(void* handle, const char* name, const char* version,
                                     const void* caller) {
  return aliquot::interposer::decide(handle, name, version, caller);
}
