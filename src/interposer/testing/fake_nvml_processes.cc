// What the fake machine's processes do: every tenant's, as a driver tells it.
#include <cstring>
#include <type_traits>

#include "interposer/testing/fake_nvml_state.h"

#define FAKE extern "C" [[gnu::visibility("default")]]

using namespace aliquot::interposer::testing;

// A record per process of the GPU. `write` fills one.
template <class Record, class Write>
static nvmlReturn_t list(const char* name, nvmlDevice_t device, unsigned* room, Record* out,
                         Write write) {
  NvmlBooks& all = nvml_books();
  if (const nvmlReturn_t failed = all.enter(name); failed != NVML_SUCCESS) return failed;
  unsigned found = 0;
  for (const FakeNvmlProcess& process : all.processes) {
    if (process.gpu != all.gpu(device).index) continue;
    if (found < *room && out != nullptr) write(out[found], process);
    ++found;
  }
  const bool fits = out != nullptr && found <= *room;
  *room = found;
  return fits || found == 0 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

template <class Info>
static void write_info(Info& out, const FakeNvmlProcess& process) {
  out = {};
  out.pid = process.pid;
  out.used_bytes = process.bytes;
}

#define RUNNING(name, Info)                                                   \
  FAKE nvmlReturn_t name(nvmlDevice_t device, unsigned* count, Info* infos) { \
    return list(__func__, device, count, infos, &write_info<Info>);           \
  }
RUNNING(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
RUNNING(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
RUNNING(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

FAKE nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                        nvmlProcessDetailList_t* plist) {
  return list(__func__, device, &plist->count, plist->processes,
              &write_info<nvmlProcessDetail_v1_t>);
}

FAKE nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                  nvmlProcessUtilizationSample_t* out,
                                                  unsigned* count, unsigned long long) {
  return list(__func__, device, count, out, [](auto& sample, const FakeNvmlProcess& process) {
    sample = {process.pid, 1000, process.sm_percent, 0, 0, 0};
  });
}
FAKE nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                        nvmlProcessesUtilizationInfo_t* info) {
  info->last_seen_us = 1000;
  return list(__func__, device, &info->count, info->samples,
              [](auto& sample, const FakeNvmlProcess& process) {
                sample = {1000, process.pid, process.sm_percent, 0, 0, 0, 0, 0};
              });
}
FAKE nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned* count,
                                              unsigned* pids) {
  return list(__func__, device, count, pids,
              [](unsigned& pid, const FakeNvmlProcess& process) { pid = process.pid; });
}

static const FakeNvmlProcess* find(unsigned pid) {
  for (const FakeNvmlProcess& process : nvml_books().processes)
    if (process.pid == pid) return &process;
  return nullptr;
}
FAKE nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t, unsigned pid,
                                               nvmlAccountingStats_t* stats) {
  if (const nvmlReturn_t failed = nvml_books().enter(__func__); failed != NVML_SUCCESS)
    return failed;
  const FakeNvmlProcess* process = find(pid);
  if (process == nullptr) return NVML_ERROR_NOT_FOUND;
  *stats = {};
  stats->max_memory_bytes = process->bytes;
  return NVML_SUCCESS;
}
FAKE nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t, nvmlAccountingStats_v2_t* stats) {
  if (const nvmlReturn_t failed = nvml_books().enter(__func__); failed != NVML_SUCCESS)
    return failed;
  const FakeNvmlProcess* process = find(stats->pid);
  if (process == nullptr) return NVML_ERROR_NOT_FOUND;
  stats->max_memory_bytes = process->bytes;
  return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned* count,
                                               nvmlEncoderSessionInfo_t* out) {
  return list(__func__, device, count, out, [](auto& session, const FakeNvmlProcess& process) {
    session = {};
    session.pid = process.pid;
  });
}
FAKE nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned* count,
                                           nvmlFBCSessionInfo_t* out) {
  return list(__func__, device, count, out, [](auto& session, const FakeNvmlProcess& process) {
    session = {};
    session.pid = process.pid;
  });
}

FAKE nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (const nvmlReturn_t failed = nvml_books().enter(__func__); failed != NVML_SUCCESS)
    return failed;
  std::strncpy(name, ("program-" + std::to_string(pid)).c_str(), length);
  return NVML_SUCCESS;
}
