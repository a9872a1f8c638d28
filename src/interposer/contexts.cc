#include "interposer/contexts.h"

#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

struct Primary {
  ShortLock lock;
  bool charged = false;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;
  unsigned entering = 0;        // calls under way that may make it
  std::uint64_t entrances = 0;  // how many there ever were
};
constinit Primary primaries[wire::kMaxGpus];

bool enter_if_charged(Primary& primary) {
  const Holding holding(primary.lock);
  if (!primary.charged) return false;
  ++primary.entering;
  ++primary.entrances;
  return true;
}

}  // namespace

std::uint64_t context_overhead(unsigned gpu) {
  return tenant().grant().gpu[gpu].context_overhead_bytes.load(std::memory_order_relaxed);
}

CUresult why_foreign(CUdevice device) {
  CUuuid uuid;
  const CUresult result = real::cuDeviceGetUuid(&uuid, device);
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_DEVICE;
}

PrimaryContext::PrimaryContext(unsigned gpu) : gpu_(gpu), granted_(true) {
  Primary& primary = primaries[gpu];
  if (enter_if_charged(primary)) return;
  Reservation reservation(gpu, wire::Kind::kContext, context_overhead(gpu));
  if (!reservation.granted()) {
    granted_ = enter_if_charged(primary);  // another thread may have got it meanwhile
    return;
  }
  const Holding holding(primary.lock);
  ++primary.entering;
  ++primary.entrances;
  if (primary.charged) return;  // and then ours rolls back
  primary.charged = true;
  primary.bytes = reservation.bytes();
  reservation.commit();
}

PrimaryContext::~PrimaryContext() {
  if (!granted_) return;
  const Holding holding(primaries[gpu_].lock);
  --primaries[gpu_].entering;
}

void PrimaryContext::is(CUcontext context) {
  const Holding holding(primaries[gpu_].lock);
  primaries[gpu_].context = name_of(context);
}

std::uint64_t PrimaryContext::handle(unsigned gpu) {
  const Holding holding(primaries[gpu].lock);
  return primaries[gpu].context;
}

void PrimaryContext::settle(unsigned gpu) {
  Primary& primary = primaries[gpu];
  std::uint64_t entrances = 0;
  {
    const Holding holding(primary.lock);
    if (!primary.charged || primary.entering != 0) return;
    entrances = primary.entrances;
  }
  unsigned flags = 0;
  int active = 1;
  if (real::cuDevicePrimaryCtxGetState(device_of(gpu), &flags, &active) != CUDA_SUCCESS) return;
  if (active != 0) return;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;
  {
    const Holding holding(primary.lock);
    // Whoever entered since the question was asked has to settle it.
    if (!primary.charged || primary.entering != 0 || primary.entrances != entrances) return;
    primary.charged = false;
    bytes = primary.bytes;
    context = primary.context;
    primary.context = 0;
  }
  give_back(gpu, wire::Kind::kContext, bytes);
  let_go_of_context(context);
}

void forget_contexts() {
  for (Primary& primary : primaries) {
    primary.lock.reset();
    primary.charged = false;
    primary.entering = 0;
    primary.context = 0;
  }
}

}  // namespace aliquot::interposer
