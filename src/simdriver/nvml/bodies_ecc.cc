// Errors of memory: ECC counts, remapped rows, retired pages.

#include <array>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

bool is_error(nvmlMemoryErrorType_t type) {
  return type >= 0 && type < NVML_MEMORY_ERROR_TYPE_COUNT;
}
bool is_counter(nvmlEccCounterType_t type) {
  return type >= 0 && type < NVML_ECC_COUNTER_TYPE_COUNT;
}

unsigned long long count_of(const GpuTelemetry& now, nvmlMemoryErrorType_t error,
                            nvmlEccCounterType_t counter) {
  const EccCounts& counts = counter == NVML_VOLATILE_ECC ? now.ecc_volatile : now.ecc_aggregate;
  return error == NVML_MEMORY_ERROR_TYPE_CORRECTED ? counts.corrected : counts.uncorrected;
}

// fn(reading) on a GPU that has ECC.
template <typename Fn>
nvmlReturn_t with_ecc(nvmlDevice_t device, Fn fn) {
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    return gpu.model().ecc ? fn(reading.figures) : NVML_ERROR_NOT_SUPPORTED;
  });
}

// fn(gpu, figures) on a GPU that remaps rows.
template <typename Fn>
nvmlReturn_t with_spare_rows(nvmlDevice_t device, Fn fn) {
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    return remaps_rows(gpu.model()) ? fn(gpu, reading.figures) : NVML_ERROR_NOT_SUPPORTED;
  });
}

// The class of a bank that has so many of its spare rows left. Where one class ends is assumed.
unsigned& class_of(nvmlRowRemapperHistogramValues_t& banks, unsigned rows_left) {
  if (rows_left == kSpareRowsOfBank) return banks.max;
  if (rows_left == 0) return banks.none;
  if (rows_left == 1) return banks.low;
  return rows_left > kSpareRowsOfBank / 2 ? banks.high : banks.partial;
}

nvmlReturn_t retired_pages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned* count) {
  if (cause < 0 || cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (remaps_rows(gpu.model()) || !gpu.model().ecc) return NVML_ERROR_NOT_SUPPORTED;
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                                  nvmlEnableState_t* pending) {
  return with_ecc(device, [&](const GpuTelemetry&) -> nvmlReturn_t {
    if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *current = NVML_FEATURE_ENABLED;
    *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return with_ecc(device, [&](const GpuTelemetry&) -> nvmlReturn_t {
    if (mode == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                         nvmlEccCounterType_t counter, unsigned long long* count) {
  return with_ecc(device, [&](const GpuTelemetry& now) -> nvmlReturn_t {
    if (count == nullptr || !is_error(error) || !is_counter(counter))
      return NVML_ERROR_INVALID_ARGUMENT;
    *count = count_of(now, error, counter);
    return NVML_SUCCESS;
  });
}
// All errors that can be put in lie in device memory; caches and registers have none.
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                            nvmlEccCounterType_t counter,
                                            nvmlEccErrorCounts_t* counts) {
  return with_ecc(device, [&](const GpuTelemetry& now) -> nvmlReturn_t {
    if (counts == nullptr || !is_error(error) || !is_counter(counter))
      return NVML_ERROR_INVALID_ARGUMENT;
    *counts = {};
    counts->memory = count_of(now, error, counter);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                             nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location,
                                             unsigned long long* count) {
  return with_ecc(device, [&](const GpuTelemetry& now) -> nvmlReturn_t {
    if (count == nullptr || !is_error(error) || !is_counter(counter) || location < 0 ||
        location >= NVML_MEMORY_LOCATION_COUNT)
      return NVML_ERROR_INVALID_ARGUMENT;
    *count = location == NVML_MEMORY_LOCATION_DRAM ? count_of(now, error, counter) : 0;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                             nvmlEccSramErrorStatus_t* status) {
  if (const nvmlReturn_t checked = check_version(status, 1); checked != NVML_SUCCESS)
    return checked;
  return with_ecc(device, [&](const GpuTelemetry&) {
    const unsigned version = status->version;
    *status = {};
    status->version = version;
    return NVML_SUCCESS;
  });
}

// Version and number of entries begin the struct; there are never any entries.
nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(
    nvmlDevice_t device, nvmlEccSramUniqueUncorrectedErrorCounts_t* counts) {
  constexpr unsigned kFirstVersion = 0x1000010;
  std::array<unsigned, 2> head{};
  if (counts == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::memcpy(head.data(), static_cast<const void*>(counts), sizeof(head));
  if (head[0] != kFirstVersion) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return with_ecc(device, [&](const GpuTelemetry&) {
    head[1] = 0;
    std::memcpy(static_cast<void*>(counts), head.data(), sizeof(head));
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  return with_spare_rows(device, [&](const Gpu&, const GpuTelemetry& now) -> nvmlReturn_t {
    for (const unsigned* out : std::array{corrected, uncorrected, pending, failed})
      if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *corrected = 0;
    *uncorrected = now.rows_remapped;
    *pending = stands(now, RowRemap::kPending) ? 1 : 0;
    *failed = stands(now, RowRemap::kFailed) ? 1 : 0;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                               nvmlRowRemapperHistogramValues_t* values) {
  return with_spare_rows(device, [&](const Gpu& gpu, const GpuTelemetry& now) -> nvmlReturn_t {
    if (values == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *values = {};
    // They are used up bank after bank (telemetry_board.cc).
    values->max = memory_banks(gpu.model());
    for (unsigned used = now.rows_remapped; used > 0;) {
      const unsigned here = std::min(used, kSpareRowsOfBank);
      values->max -= 1;
      class_of(*values, kSpareRowsOfBank - here) += 1;
      used -= here;
    }
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                       unsigned* count, unsigned long long*) {
  return retired_pages(device, cause, count);
}
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned* count, unsigned long long*,
                                          unsigned long long*) {
  return retired_pages(device, cause, count);
}
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device,
                                                    nvmlEnableState_t* pending) {
  unsigned none = 0;
  const nvmlReturn_t result =
      retired_pages(device, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR, &none);
  if (result != NVML_SUCCESS) return result;
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *pending = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t* status) {
  if (const nvmlReturn_t checked = check_version(status, 1); checked != NVML_SUCCESS)
    return checked;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().architecture != Architecture::kBlackwell) return NVML_ERROR_NOT_SUPPORTED;
    status->channel_pending = 0;
    status->tpc_pending = 0;
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
