// NvmlShare: a process under a share of GPUs 1 and 3 of the fake machine's four, in a test of the
// NVML guards: the fake library behind the interposer's own functions, a lease without a broker.
//
// The interposer is linked into the test, so `nvmlInit_v2()` in a test is our function. State is
// the process's, hence one NvmlShare at a time.
#pragma once

#include <unistd.h>

#include <cstring>

#include "driver_abi/nvml_functions.h"
#include "interposer/nvml_processes.h"
#include "interposer/nvml_view.h"
#include "interposer/process.h"
#include "interposer/real_driver.h"
#include "interposer/testing/fake_nvml.h"
#include "wire/quota_fixture.h"

#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  extern "C" aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol> symbol params;
#include "driver_abi/nvml_entry_points.def"

namespace aliquot::interposer::testing {

class NvmlShare {
 public:
  static constexpr std::uint64_t kMiB = 1u << 20;
  static constexpr std::uint64_t kGiB = 1ull << 30;
  static constexpr unsigned kLeased[] = {1, 3};
  static constexpr unsigned kOwnSlot = 3;

  explicit NvmlShare(std::uint64_t limit = 4 * kGiB)
      : fake(fake_nvml_at(ALIQUOT_FAKE_LIBNVIDIA_ML)), lease(limit, 2) {
    fake.reset();
    forget_process();
    wire::Grant& grant = lease.grant;
    grant.magic = wire::kGrantMagic;
    grant.layout = wire::kGrantLayout;
    grant.size_bytes = sizeof(wire::Grant);
    grant.gpu_count = 2;
    grant.slot_count = lease.view.slots();
    std::strcpy(grant.real_libnvidia_ml, ALIQUOT_FAKE_LIBNVIDIA_ML);
    for (unsigned i = 0; i < 2; ++i) {
      fake.gpus[kLeased[i]].uuid.copy(grant.gpu[i].uuid_text, sizeof grant.gpu[i].uuid_text - 1);
      grant.gpu[i].physical_bytes = fake.gpus[kLeased[i]].total_bytes;
    }
    wire::Attachment attachment;
    attachment.slot = kOwnSlot;
    attachment.grant = &grant;
    attachment.ledger = lease.view;
    attachment.ledger_bytes = lease.bytes;
    tenant().adopt(attachment);
  }
  ~NvmlShare() {
    while (nvmlShutdown() == NVML_SUCCESS) continue;
    tenant().leave();
  }
  NvmlShare(const NvmlShare&) = delete;
  NvmlShare& operator=(const NvmlShare&) = delete;

  // nvmlInit, and the handle of a GPU of the lease.
  nvmlDevice_t begin(unsigned gpu = 0) {
    nvmlDevice_t device = nullptr;
    if (nvmlInit_v2() != NVML_SUCCESS) return nullptr;
    return nvmlDeviceGetHandleByIndex_v2(gpu, &device) == NVML_SUCCESS ? device : nullptr;
  }
  // As if it had leaked: the handle of a GPU of another lease.
  nvmlDevice_t foreign(unsigned machine_gpu = 0) {
    return reinterpret_cast<nvmlDevice_t>(&fake.gpus[machine_gpu]);
  }
  // A process in a slot, as the broker and it itself write it down.
  void process(unsigned slot, unsigned pid, unsigned driver_pid, std::uint64_t bytes,
               unsigned gpu = 0, std::uint64_t pid_namespace = own_pid_namespace()) {
    for (unsigned g = 0; g < 2; ++g) {
      wire::Cell& cell = lease.view.cell(slot, g);
      cell.own_pid = pid;
      cell.broker_pid = driver_pid;
      cell.pid_namespace = pid_namespace;
    }
    const wire::Quota quota{lease.view, lease.grant, gpu};
    if (bytes != 0 && quota.reserve(slot, bytes) != wire::Outcome::kOk) std::abort();
    fake.processes.push_back({kLeased[gpu], driver_pid, bytes, 40});
  }

  FakeNvml& fake;
  wire::QuotaFixture lease;
};

}  // namespace aliquot::interposer::testing
