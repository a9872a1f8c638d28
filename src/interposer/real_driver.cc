#include "interposer/real_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "interposer/inside.h"
#include "interposer/lookups.h"
#include "interposer/old_glibc.h"
#include "interposer/short_lock.h"
#include "interposer/tenant.h"

extern "C" {
void aliquot_cuda_absent();
void aliquot_cuda_refused();
void aliquot_nvml_absent();
void aliquot_nvml_refused();
[[gnu::visibility("hidden")]] void* aliquot_resolve(void** slot);
}

namespace aliquot::interposer {

constinit std::atomic<unsigned> load_states[2];

namespace {

void* handles[2];  // of the loaded libraries
constinit ShortLock load_lock;

std::atomic<unsigned>& state_of(Library library) {
  return load_states[static_cast<unsigned>(library)];
}
thread_local constinit bool loading [[gnu::tls_model("initial-exec")]] = false;

// A library's part of the tables.
struct Rows {
  const driver_abi::Entry* entries;
  std::size_t count;
  void** slots;
  void* const* hooks;
  void (*absent)();
  void (*refused)();
};

Rows rows_of(Library library) {
  if (library == Library::kCuda)
    return {driver_abi::kCudaEntries.data(),
            driver_abi::kCudaCount,
            aliquot_cuda_slots,
            aliquot_cuda_hooks,
            &aliquot_cuda_absent,
            &aliquot_cuda_refused};
  return {driver_abi::kNvmlEntries.data(),
          driver_abi::kNvmlCount,
          aliquot_nvml_slots,
          aliquot_nvml_hooks,
          &aliquot_nvml_absent,
          &aliquot_nvml_refused};
}

const char* path_of(Library library) {
  const wire::Grant& grant = tenant().grant();
  return library == Library::kCuda ? grant.real_libcuda : grant.real_libnvidia_ml;
}

void say(const char* what, const char* path, const char* why) {
  const char* quiet = getenv("ALIQUOT_QUIET");
  if (quiet != nullptr && strcmp(quiet, "1") == 0) return;
  const char* texts[] = {"aliquot: ", what, path, ": ", why != nullptr ? why : "?", "\n"};
  iovec parts[6];
  for (int i = 0; i < 6; ++i) parts[i] = {const_cast<char*>(texts[i]), strlen(texts[i])};
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 6);
}

// Where this library lies in place of the driver under its names but was loaded under another (by
// preload), the dynamic linker must learn those names before the real driver brings them along:
// opening the file once more does that. Where the names lead elsewhere nothing is loaded.
void claim_names() {
  for (const char* name : {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"})
    dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

bool fill(Library library, void* handle) {
  const Rows rows = rows_of(library);
  const Dlsym lookup = libc_dlsym();
  for (std::size_t i = 0; i < rows.count; ++i) {
    void* function = lookup(handle, rows.entries[i].c_str());
    if (function == rows.hooks[i]) return false;  // the path leads to ourselves
    if (function == nullptr) function = reinterpret_cast<void*>(rows.absent);
    __atomic_store_n(&rows.slots[i], function, __ATOMIC_RELAXED);
  }
  return true;
}

bool load_locked(Library library) {
  const char* path = path_of(library);
  claim_names();
  dlerror();
  void* handle = path[0] == '/' ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    say("cannot load the driver ", path, path[0] == '/' ? dlerror() : "the grant has no path");
    return false;
  }
  if (!fill(library, handle)) {
    say("cannot use the driver ", path, "that is this library itself, not the real one");
    return false;
  }
  handles[static_cast<unsigned>(library)] = handle;
  return true;
}

}  // namespace

bool attach_and_load(Library library) {
  std::atomic<unsigned>& state = state_of(library);
  if (loading || !tenant().attached()) return false;
  if (state.load(std::memory_order_acquire) == kLoaded) return true;
  const Inside inside;
  const Holding holding(load_lock);
  if (state.load(std::memory_order_acquire) == kNotTried) {
    loading = true;  // the real library's constructors may call us
    const bool done = load_locked(library);
    loading = false;
    state.store(done ? kLoaded : kLoadFailed, std::memory_order_release);
  }
  return state.load(std::memory_order_acquire) == kLoaded;
}

void retry_load(Library library) {
  unsigned failed = kLoadFailed;
  state_of(library).compare_exchange_strong(failed, kNotTried);
}

void forget_load_lock() { load_lock.reset(); }

Named named(std::string_view symbol) {
  if (const auto row = driver_abi::cuda_row(symbol))
    return {Library::kCuda, driver_abi::index_of(*row), hook_of(*row)};
  if (const auto row = driver_abi::nvml_row(symbol))
    return {Library::kNvml, driver_abi::index_of(*row),
            aliquot_nvml_hooks[driver_abi::index_of(*row)]};
  return {};
}

void* handle_of(Library library) { return handles[static_cast<unsigned>(library)]; }

bool has(Library library, std::size_t row) {
  if (state_of(library).load(std::memory_order_acquire) != kLoaded) return false;
  const Rows rows = rows_of(library);
  return __atomic_load_n(&rows.slots[row], __ATOMIC_RELAXED) !=
         reinterpret_cast<void*>(rows.absent);
}

}  // namespace aliquot::interposer

// The first call of a row: its arguments wait in entry_stubs.S for where to go.
void* aliquot_resolve(void** slot) {
  using namespace aliquot::interposer;
  const bool cuda =
      slot >= aliquot_cuda_slots && slot < aliquot_cuda_slots + aliquot::driver_abi::kCudaCount;
  const Library library = cuda ? Library::kCuda : Library::kNvml;
  return load(library) ? *slot : reinterpret_cast<void*>(rows_of(library).refused);
}
