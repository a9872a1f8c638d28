// Share: a process under a share, in a test: the fake driver behind the interposer's own functions,
// and a lease without a broker.
//
// The interposer is linked into the test, so `cuMemAlloc_v2(...)` in a test is our function. State
// is the process's, hence one Share at a time.
#pragma once

#include <unistd.h>

#include <cstring>

#include "interposer/devices.h"
#include "interposer/gate.h"
#include "interposer/inside.h"
#include "interposer/process.h"
#include "interposer/real_driver.h"
#include "interposer/testing/fake_driver.h"
#include "wire/quota_fixture.h"

#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  extern "C" CUresult symbol params;
#include "driver_abi/cuda_entry_points.def"

namespace aliquot::interposer::testing {

class Share {
 public:
  static constexpr std::uint64_t kMiB = 1u << 20;
  static constexpr std::uint64_t kGiB = 1ull << 30;

  // The first `gpus` of the fake's four devices; context overhead 0 unless set.
  explicit Share(std::uint64_t limit, unsigned gpus = 1)
      : fake(fake_at(ALIQUOT_FAKE_LIBCUDA)), lease(limit, gpus) {
    fake.reset();
    forget_process();
    wire::Grant& grant = lease.grant;
    grant.magic = wire::kGrantMagic;
    grant.layout = wire::kGrantLayout;
    grant.size_bytes = sizeof(wire::Grant);
    grant.gpu_count = gpus;
    grant.slot_count = lease.view.slots();
    std::strcpy(grant.real_libcuda, ALIQUOT_FAKE_LIBCUDA);
    for (unsigned i = 0; i < gpus; ++i) {
      std::memcpy(grant.gpu[i].uuid, fake.machine[i].uuid.bytes, 16);
      text_of(fake.machine[i].uuid).copy(grant.gpu[i].uuid_text, sizeof grant.gpu[i].uuid_text - 1);
      grant.gpu[i].physical_bytes = fake.machine[i].total_bytes;
    }
    attach();
  }
  ~Share() {
    stop_watches();
    tenant().leave();
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Also in a forked child.
  void attach() const {
    wire::Attachment attachment;
    attachment.slot = kSlot;
    attachment.grant = &lease.grant;
    attachment.ledger = lease.view;
    attachment.ledger_bytes = lease.bytes;
    tenant().adopt(attachment);
  }
  // cuInit and a context on the device, which is current then.
  CUcontext begin(CUdevice device = 0) {
    CUcontext context = nullptr;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS)
      return nullptr;
    return context;
  }
  std::uint64_t used(unsigned gpu = 0) const { return tenant().quota(gpu).used(); }
  std::uint64_t kind(wire::Kind kind, unsigned gpu = 0) const {
    return tenant().quota(gpu).bytes_of_kind(kSlot, kind);
  }
  std::uint64_t refusals(unsigned gpu = 0) const { return lease.view.cell(kSlot, gpu).refusals; }
  std::uint64_t launches(unsigned gpu = 0) const { return lease.view.cell(kSlot, gpu).launches; }

  static constexpr int kSlot = 3;
  FakeDriver& fake;
  wire::QuotaFixture lease;

 private:
  static std::string text_of(const CUuuid& uuid);
};

inline std::string Share::text_of(const CUuuid& uuid) {
  std::string text = "GPU-";
  constexpr char kHex[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace aliquot::interposer::testing
