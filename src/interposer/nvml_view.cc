#include "interposer/nvml_view.h"

#include <atomic>

#include "interposer/real_driver.h"
#include "interposer/tenant.h"

namespace aliquot::interposer::nvml_view {
namespace {

constinit std::atomic<unsigned> real_users{0};   // successful inits of the real library
constinit std::atomic<unsigned> empty_users{0};  // inits of a program whose lease was refused
constinit std::atomic<nvmlDevice_t> devices[wire::kMaxGpus];

void find_devices() {
  const wire::Grant& grant = tenant().grant();
  for (unsigned gpu = 0; gpu < grant.gpu_count; ++gpu) {
    nvmlDevice_t found = nullptr;
    if (real::nvmlDeviceGetHandleByUUID(grant.gpu[gpu].uuid_text, &found) != NVML_SUCCESS)
      found = nullptr;
    devices[gpu].store(found, std::memory_order_release);
  }
}

// One less, unless there is none.
bool take_one(std::atomic<unsigned>& users) {
  unsigned seen = users.load();
  while (seen != 0)
    if (users.compare_exchange_weak(seen, seen - 1)) return true;
  return false;
}

}  // namespace

nvmlReturn_t start(nvmlReturn_t (*initialise)(unsigned flags), unsigned flags) {
  // The tenant has said why on stderr; a program that only looks at GPUs goes on without any.
  if (!tenant().attached()) {
    empty_users.fetch_add(1);
    return NVML_SUCCESS;
  }
  retry_load(Library::kNvml);
  if (!load(Library::kNvml)) return NVML_ERROR_LIBRARY_NOT_FOUND;
  const nvmlReturn_t result = initialise(flags);
  if (result != NVML_SUCCESS) return result;
  find_devices();
  real_users.fetch_add(1);
  return NVML_SUCCESS;
}

nvmlReturn_t stop() {
  if (real_users.load() != 0) {
    const nvmlReturn_t result = real::nvmlShutdown();
    if (result == NVML_SUCCESS) take_one(real_users);
    return result;
  }
  return take_one(empty_users) ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

bool started() { return real_users.load() != 0 || empty_users.load() != 0; }

bool leased() { return real_users.load() != 0 && tenant().attached(); }

unsigned device_count() { return leased() ? tenant().gpu_count() : 0; }

nvmlDevice_t device(unsigned gpu) {
  return gpu < device_count() ? devices[gpu].load(std::memory_order_acquire) : nullptr;
}

int gpu_of(nvmlDevice_t device) {
  if (device == nullptr) return -1;
  for (unsigned gpu = 0; gpu < device_count(); ++gpu)
    if (devices[gpu].load(std::memory_order_acquire) == device) return static_cast<int>(gpu);
  return -1;
}

nvmlReturn_t only_if_leased(nvmlReturn_t result, nvmlDevice_t found, nvmlDevice_t* out) {
  if (result != NVML_SUCCESS) return result;
  if (!is_leased(found)) return NVML_ERROR_NOT_FOUND;
  *out = found;
  return NVML_SUCCESS;
}

}  // namespace aliquot::interposer::nvml_view
