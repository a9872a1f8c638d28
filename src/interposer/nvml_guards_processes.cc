// Who uses the GPU: the share's own processes, with what the ledger says they hold.
//
// The library is not asked: it would tell of every tenant, and its figures lag. All processes are
// compute processes; there are no graphics contexts under a share (cuda_entry_points.def denies
// them), so those lists are empty, and so is that of MPS clients.
#include "interposer/nvml_guards.h"
#include "interposer/nvml_processes.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

constexpr unsigned kNoInstance = 0xffffffff;  // not on a MIG instance

void write(nvmlProcessInfo_v1_t& out, const OwnProcess& process) {
  out = {process.pid, process.bytes};
}
void write(nvmlProcessInfo_v2_t& out, const OwnProcess& process) {
  out = {process.pid, process.bytes, kNoInstance, kNoInstance};
}
void write(nvmlProcessDetail_v1_t& out, const OwnProcess& process) {
  out = {process.pid, process.bytes, kNoInstance, kNoInstance, 0};
}

// The library's manner: too little room is an error that says how much is needed.
template <class Info>
nvmlReturn_t list(nvmlDevice_t device, unsigned* count, Info* infos) {
  if (count == nullptr || (infos == nullptr && *count != 0)) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned found = 0;
  for_each_own_process(static_cast<unsigned>(nvml_view::gpu_of(device)),
                       [&](const OwnProcess& process) {
                         if (process.bytes == 0) return;
                         if (found < *count) write(infos[found], process);
                         ++found;
                       });
  const bool fits = found <= *count;
  *count = found;
  return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t list_none(unsigned* count) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* info_count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return list(device, info_count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* info_count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return list(device, info_count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* info_count,
                                                     nvmlProcessInfo_t* infos) {
  return list(device, info_count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned int* info_count,
                                                   nvmlProcessInfo_v1_t*) {
  return list_none(info_count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned int* info_count,
                                                      nvmlProcessInfo_v2_t*) {
  return list_none(info_count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned int* info_count,
                                                      nvmlProcessInfo_t*) {
  return list_none(info_count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned int* info_count,
                                                     nvmlProcessInfo_v1_t*) {
  return list_none(info_count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned int* info_count,
                                                        nvmlProcessInfo_v2_t*) {
  return list_none(info_count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned int* info_count,
                                                        nvmlProcessInfo_t*) {
  return list_none(info_count);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_t* plist) {
  if (plist == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (plist->version != driver_abi::nvml_struct_version<nvmlProcessDetailList_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  switch (plist->mode) {
    case NVML_PROCESS_MODE_COMPUTE:
      return list(device, &plist->count, plist->processes);
    case NVML_PROCESS_MODE_GRAPHICS:
    case NVML_PROCESS_MODE_MPS:
      return list_none(&plist->count);
    default:
      return NVML_ERROR_INVALID_ARGUMENT;
  }
}

// A name only for processes of the share: others are none of the caller's business.
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (!nvml_view::leased() || driver_pid_of_pid(pid) == 0) return NVML_ERROR_NOT_FOUND;
  return real::nvmlSystemGetProcessName(pid, name, length);
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
