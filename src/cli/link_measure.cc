#include "cli/link_measure.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>

#include "cli/cuda_driver.h"
#include "common/clock.h"

namespace aliquot::cli {
namespace {

constexpr std::size_t kLarge = 64u << 20;
constexpr std::size_t kSmall = 8;
constexpr int kLargeTries = 3, kSmallTries = 20;
constexpr double kPacketHeadBytes = 24;
constexpr Nanoseconds kFirstHold = kMillisecond, kLongestHold = 2 * kSecond;

// One GPU with what a measurement needs of it; gives it back when destroyed.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> open(const CudaDriver& driver, int ordinal) {
    std::unique_ptr<Bench> bench(new Bench(driver));
    const Status opened = bench->set_up(ordinal);
    if (!opened)
      return Error{opened.error().code,
                   "gpu " + std::to_string(ordinal) + ": " + opened.error().message};
    return bench;
  }
  ~Bench() {
    driver_.call<Cuda::cuCtxSetCurrent>(context);
    for (const CUevent event : {begin_, end_})
      if (event != nullptr) driver_.call<Cuda::cuEventDestroy_v2>(event);
    if (stream != nullptr) driver_.call<Cuda::cuStreamDestroy_v2>(stream);
    if (memory != 0) driver_.call<Cuda::cuMemFree_v2>(memory);
    if (host != nullptr) driver_.call<Cuda::cuMemFreeHost>(host);
    if (context != nullptr) driver_.call<Cuda::cuDevicePrimaryCtxRelease_v2>(device);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Of one copy that `copy` puts on the stream, in milliseconds. The stream is held by a kernel
  // until all is queued, so that what the host needs for that is not measured.
  Result<double> time(const std::function<CUresult()>& copy) {
    for (;;) {
      const Nanoseconds start = clock_.now();
      float ms = 0;
      CUresult r = driver_.call<Cuda::cuCtxSetCurrent>(context);
      if (r == CUDA_SUCCESS) r = hold_stream();
      if (r == CUDA_SUCCESS) r = driver_.call<Cuda::cuEventRecord>(begin_, stream);
      if (r == CUDA_SUCCESS) r = copy();
      if (r == CUDA_SUCCESS) r = driver_.call<Cuda::cuEventRecord>(end_, stream);
      const Nanoseconds took = clock_.now() - start;
      if (r == CUDA_SUCCESS) r = driver_.call<Cuda::cuStreamSynchronize>(stream);
      if (r == CUDA_SUCCESS) r = driver_.call<Cuda::cuEventElapsedTime>(&ms, begin_, end_);
      if (r != CUDA_SUCCESS) return driver_.error("copy", r);
      if (spin_ == nullptr || 2 * took < held_ || held_ >= kLongestHold) return ms;
      held_ = std::min(kLongestHold, 4 * took);
    }
  }

  // In milliseconds.
  Result<double> best_of(int tries, const std::function<CUresult()>& copy) {
    double best = 0;
    held_ = kFirstHold;
    for (int i = 0; i < tries; ++i) {
      const auto ms = time(copy);
      if (!ms) return ms.error();
      best = i == 0 ? *ms : std::min(best, *ms);
    }
    return best;
  }

  Result<MeasuredWay> way(const std::function<CUresult(std::size_t)>& copy) {
    const auto large = best_of(kLargeTries, [&] { return copy(kLarge); });
    if (!large) return large.error();
    const auto small = best_of(kSmallTries, [&] { return copy(kSmall); });
    if (!small) return small.error();
    const double mb_s = *large > 0 ? static_cast<double>(kLarge) / *large / 1e3 : 0;
    return MeasuredWay{mb_s, *small * 1e3};
  }

  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  void* host = nullptr;

 private:
  explicit Bench(const CudaDriver& driver) : driver_(driver) {}

  Status set_up(int ordinal) {
    const auto done = [&](const char* what, CUresult r) -> Status {
      return r == CUDA_SUCCESS ? Status() : Status(driver_.error(what, r));
    };
    Status s = done("cuDeviceGet", driver_.call<Cuda::cuDeviceGet>(&device, ordinal));
    if (s)
      s = done("cuDevicePrimaryCtxRetain",
               driver_.call<Cuda::cuDevicePrimaryCtxRetain>(&context, device));
    if (s) s = done("cuCtxSetCurrent", driver_.call<Cuda::cuCtxSetCurrent>(context));
    if (s) s = done("cuMemAlloc of 64 MiB", driver_.call<Cuda::cuMemAlloc_v2>(&memory, kLarge));
    if (s) s = done("cuMemHostAlloc", driver_.call<Cuda::cuMemHostAlloc>(&host, kLarge, 0u));
    if (s) s = done("cuStreamCreate", driver_.call<Cuda::cuStreamCreate>(&stream, 0u));
    if (s) s = done("cuEventCreate", driver_.call<Cuda::cuEventCreate>(&begin_, 0u));
    if (s) s = done("cuEventCreate", driver_.call<Cuda::cuEventCreate>(&end_, 0u));
    // Without the kernel (a GPU that is too old for it) figures are a little low.
    CUmodule module = nullptr;
    if (s && driver_.call<Cuda::cuModuleLoadData>(&module, kSpinPtx) == CUDA_SUCCESS)
      driver_.call<Cuda::cuModuleGetFunction>(&spin_, module, "aliquot_spin");
    return s;
  }

  CUresult hold_stream() {
    if (spin_ == nullptr) return CUDA_SUCCESS;
    auto length = static_cast<std::uint64_t>(held_);
    std::array<void*, 1> parameters{&length};
    return driver_.call<Cuda::cuLaunchKernel>(spin_, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream,
                                              parameters.data(), nullptr);
  }

  const CudaDriver& driver_;
  MonotonicClock clock_;
  CUevent begin_ = nullptr, end_ = nullptr;
  CUfunction spin_ = nullptr;
  Nanoseconds held_ = kFirstHold;
};

Result<MeasuredHost> measure_host(const CudaDriver& driver, Bench& gpu, unsigned number) {
  const auto to = gpu.way([&](std::size_t bytes) {
    return driver.call<Cuda::cuMemcpyHtoDAsync_v2>(gpu.memory, gpu.host, bytes, gpu.stream);
  });
  if (!to) return to.error();
  const auto from = gpu.way([&](std::size_t bytes) {
    return driver.call<Cuda::cuMemcpyDtoHAsync_v2>(gpu.host, gpu.memory, bytes, gpu.stream);
  });
  if (!from) return from.error();
  return MeasuredHost{number, *to, *from};
}

Result<MeasuredPeer> measure_peer(const CudaDriver& driver, Bench& from, Bench& to) {
  MeasuredPeer peer;
  int can = 0;
  peer.direct =
      driver.call<Cuda::cuDeviceCanAccessPeer>(&can, from.device, to.device) == CUDA_SUCCESS &&
      can != 0;
  driver.call<Cuda::cuCtxSetCurrent>(from.context);
  // Once enabled it stays so for the process; a second time is refused and changes nothing.
  if (peer.direct) driver.call<Cuda::cuCtxEnablePeerAccess>(to.context, 0u);
  const auto way = from.way([&](std::size_t bytes) {
    return driver.call<Cuda::cuMemcpyPeerAsync>(to.memory, to.context, from.memory, from.context,
                                                bytes, from.stream);
  });
  if (!way) return way.error();
  peer.way = *way;
  return peer;
}

}  // namespace

Result<LinkMeasure> measure_links(const std::string& libcuda) {
  // As NVML counts. Before the driver is loaded; this program has one thread.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);  // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("CUDA_VISIBLE_DEVICES");              // NOLINT(concurrency-mt-unsafe)
  const auto driver = CudaDriver::load(libcuda);
  if (!driver) return driver.error();
  if (const CUresult r = driver->call<Cuda::cuInit>(0u); r != CUDA_SUCCESS)
    return driver->error("cuInit", r);
  int count = 0;
  if (const CUresult r = driver->call<Cuda::cuDeviceGetCount>(&count); r != CUDA_SUCCESS)
    return driver->error("cuDeviceGetCount", r);
  std::vector<std::unique_ptr<Bench>> gpus;
  for (int i = 0; i < count; ++i) {
    auto gpu = Bench::open(*driver, i);
    if (!gpu) return gpu.error();
    gpus.push_back(std::move(*gpu));
  }
  LinkMeasure measure;
  for (unsigned i = 0; i < gpus.size(); ++i) {
    const auto host = measure_host(*driver, *gpus[i], i);
    if (!host) return host.error();
    measure.hosts.push_back(*host);
  }
  for (unsigned a = 0; a < gpus.size(); ++a)
    for (unsigned b = 0; b < gpus.size(); ++b) {
      if (a == b) continue;
      auto peer = measure_peer(*driver, *gpus[a], *gpus[b]);
      if (!peer) return peer.error();
      peer->from = a;
      peer->to = b;
      measure.peers.push_back(*peer);
    }
  return measure;
}

double pcie_ceiling_mb_s(unsigned generation, unsigned width, unsigned payload_bytes) {
  constexpr std::array kGigaTransfers{0.0, 2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  if (generation == 0 || generation >= kGigaTransfers.size()) return 0;
  const double code = generation <= 2 ? 0.8 : generation <= 5 ? 128.0 / 130 : 1.0;
  const double payload = payload_bytes;
  return kGigaTransfers[generation] * 1e3 / 8 * code * width * payload /
         (payload + kPacketHeadBytes);
}

}  // namespace aliquot::cli
