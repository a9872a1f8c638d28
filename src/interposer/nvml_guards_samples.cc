// What each process makes the GPU do: the library's samples and records, those of the share's own
// processes, under the caller's pids.
#include "interposer/nvml_guards.h"
#include "interposer/nvml_processes.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

// More than these a driver does not keep. They lie on the caller's stack.
constexpr unsigned kMostSamples = 256;
constexpr unsigned kMostSessions = 128;
constexpr unsigned kMostAccounted = 4000;

// Keeps records of the share's processes and gives them the caller's pids.
template <class Record>
unsigned keep_own(Record* records, unsigned count, unsigned most) {
  unsigned kept = 0;
  for (unsigned i = 0; i < count && i < most; ++i) {
    const unsigned pid = pid_of_driver_pid(records[i].pid);
    if (pid == 0) continue;
    records[kept] = records[i];
    records[kept++].pid = pid;
  }
  return kept;
}

// Too little room is an error that says how much is needed.
template <class Record>
nvmlReturn_t hand_out(const Record* records, unsigned kept, unsigned* count, Record* out) {
  const unsigned room = out != nullptr ? *count : 0;
  *count = kept;
  if (kept > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < kept; ++i) out[i] = records[i];
  return NVML_SUCCESS;
}

template <class Session>
nvmlReturn_t own_sessions(nvmlReturn_t (*ask)(nvmlDevice_t, unsigned*, Session*),
                          nvmlDevice_t device, unsigned* count, Session* out) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Session sessions[kMostSessions];
  unsigned found = kMostSessions;
  const nvmlReturn_t result = ask(device, &found, sessions);
  if (result != NVML_SUCCESS) return result;
  const unsigned kept = keep_own(sessions, found, kMostSessions);
  if (out == nullptr) {  // asks how many there are
    *count = kept;
    return NVML_SUCCESS;
  }
  return hand_out(sessions, kept, count, out);
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* utilization,
                                             unsigned int* process_samples_count,
                                             unsigned long long last_seen_time_stamp) {
  if (process_samples_count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlProcessUtilizationSample_t samples[kMostSamples];
  unsigned found = kMostSamples;
  const nvmlReturn_t result =
      real::nvmlDeviceGetProcessUtilization(device, samples, &found, last_seen_time_stamp);
  if (result != NVML_SUCCESS) return result;
  const unsigned kept = keep_own(samples, found, kMostSamples);
  if (kept == 0) return NVML_ERROR_NOT_FOUND;  // as the library says that nobody ran
  return hand_out(samples, kept, process_samples_count, utilization);
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != driver_abi::nvml_struct_version<nvmlProcessesUtilizationInfo_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlProcessUtilizationInfo_v1_t samples[kMostSamples];
  nvmlProcessesUtilizationInfo_t whole{info->version, kMostSamples, info->last_seen_us, samples};
  const nvmlReturn_t result = real::nvmlDeviceGetProcessesUtilizationInfo(device, &whole);
  if (result != NVML_SUCCESS) return result;
  const unsigned kept = keep_own(samples, whole.count, kMostSamples);
  if (kept == 0) return NVML_ERROR_NOT_FOUND;
  info->last_seen_us = whole.last_seen_us;
  return hand_out(samples, kept, &info->count, info->samples);
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                         unsigned int* pids) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned accounted[kMostAccounted];
  unsigned found = kMostAccounted;
  const nvmlReturn_t result = real::nvmlDeviceGetAccountingPids(device, &found, accounted);
  if (result != NVML_SUCCESS) return result;
  unsigned kept = 0;
  for (unsigned i = 0; i < found && i < kMostAccounted; ++i)
    if (const unsigned pid = pid_of_driver_pid(accounted[i]); pid != 0) accounted[kept++] = pid;
  return hand_out(accounted, kept, count, pids);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t* stats) {
  const unsigned driver_pid = driver_pid_of_pid(pid);
  if (driver_pid == 0) return NVML_ERROR_NOT_FOUND;
  return real::nvmlDeviceGetAccountingStats(device, driver_pid, stats);
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t* stats) {
  if (stats == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned pid = stats->pid;
  nvmlAccountingStats_v2_t asked = *stats;
  asked.pid = driver_pid_of_pid(pid);
  if (asked.pid == 0) return NVML_ERROR_NOT_FOUND;
  const nvmlReturn_t result = real::nvmlDeviceGetAccountingStats_v2(device, &asked);
  if (result != NVML_SUCCESS) return result;
  *stats = asked;
  stats->pid = pid;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int* session_count,
                                          nvmlEncoderSessionInfo_t* session_infos) {
  return own_sessions(&real::nvmlDeviceGetEncoderSessions, device, session_count, session_infos);
}
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int* session_count,
                                      nvmlFBCSessionInfo_t* session_info) {
  return own_sessions(&real::nvmlDeviceGetFBCSessions, device, session_count, session_info);
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
