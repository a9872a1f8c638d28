// cuInit and cuGetProcAddress: the two ways in that must also answer a program without a lease.
#include "driver_abi/cuda_table.h"
#include "interposer/devices.h"
#include "interposer/guards.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using driver_abi::Cuda;

int driver_version() {
  int version = 0;
  return real::cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

driver_abi::ProcAddressAnswer answer_of_table(const char* name, int version, std::uint64_t flags,
                                              int driver) {
  return driver_abi::symbol_for(
      {name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0}, driver);
}

// Our function for the driver's answer to this question; null: leave the answer as it is.
//
// The driver's pointer says most: it is the export of a row. Where a driver hands out other
// pointers than it exports, name, version and flags decide by the table.
void* hook_for(const void* found, const driver_abi::ProcAddressAnswer& expected, const char* name) {
  if (expected.status != driver_abi::ProcAddressStatus::kFound) return nullptr;
  if (slot_of(expected.id) == found) return hook_of(expected.id);
  for (std::size_t i = 0; i < driver_abi::kCudaCount; ++i) {
    const auto id = static_cast<Cuda>(i);
    if (slot_of(id) == found && driver_abi::entry(id).base == name) return hook_of(id);
  }
  return hook_of(expected.id);
}

// Without a lease: our own functions, which say NO_DEVICE, so that a program learns it from cuInit
// and not from a missing name.
CUresult answer_without_lease(const char* name, void** function, int version, std::uint64_t flags,
                              CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr int kAnyDriver = 1 << 30;
  const auto answer = answer_of_table(name, version, flags, kAnyDriver);
  const bool found = answer.status == driver_abi::ProcAddressStatus::kFound;
  if (status != nullptr)
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS
              : answer.status == driver_abi::ProcAddressStatus::kVersionTooLow
                  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *function = hook_of(answer.id);
  return CUDA_SUCCESS;
}

// After the driver has answered; its status and its errors stay as they are.
void rewrite(const char* name, void** function, int version, std::uint64_t flags) {
  if (name == nullptr || function == nullptr || *function == nullptr) return;
  const auto expected = answer_of_table(name, version, flags, driver_version());
  if (void* hook = hook_for(*function, expected, name)) *function = hook;
}

}  // namespace

namespace guard {

CUresult cuInit(unsigned int flags) {
  tenant().ask_again_if_refused();
  retry_load(Library::kCuda);
  return load(Library::kCuda) ? initialise_driver(flags) : CUDA_ERROR_NO_DEVICE;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, uint64_t flags) {
  if (!load(Library::kCuda))
    return answer_without_lease(symbol, function, cuda_version, flags, nullptr);
  const CUresult result = real::cuGetProcAddress(symbol, function, cuda_version, flags);
  if (result == CUDA_SUCCESS) rewrite(symbol, function, cuda_version, flags);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, uint64_t flags,
                             CUdriverProcAddressQueryResult* symbol_status) {
  if (!load(Library::kCuda))
    return answer_without_lease(symbol, function, cuda_version, flags, symbol_status);
  const CUresult result =
      real::cuGetProcAddress_v2(symbol, function, cuda_version, flags, symbol_status);
  if (result == CUDA_SUCCESS) rewrite(symbol, function, cuda_version, flags);
  return result;
}

}  // namespace guard
}  // namespace aliquot::interposer
