#include "cli/burn_load.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "cli/cuda_driver.h"

namespace aliquot::cli {
namespace {

constexpr double kLongestPareto = 50.0 * kMillisecond;

class Burn {
 public:
  Burn(const CudaDriver& driver, const BurnRequest& request, const Clock& clock)
      : driver_(driver), request_(request), clock_(clock), random_(request.seed) {}

  Result<BurnReport> run() {
    if (const Status open = open_gpu(); !open) return open.error();
    take_memory();
    std::size_t total = 0;
    std::size_t free = 0;
    driver_.call<Cuda::cuMemGetInfo_v2>(&free, &total);
    report_.free_bytes_while_held = free;
    const bool works = request_.kernel > 0 || request_.depth > 0;
    const Status worked = works ? launch_kernels() : hold();
    for (const CUdeviceptr block : blocks_) driver_.call<Cuda::cuMemFree_v2>(block);
    driver_.call<Cuda::cuDevicePrimaryCtxRelease_v2>(device_);
    if (!worked) return worked.error();
    return report_;
  }

 private:
  Status open_gpu() {
    if (const CUresult r = driver_.call<Cuda::cuInit>(0u); r != CUDA_SUCCESS)
      return driver_.error("cuInit", r);
    if (const CUresult r =
            driver_.call<Cuda::cuDeviceGet>(&device_, static_cast<int>(request_.gpu));
        r != CUDA_SUCCESS)
      return driver_.error("cuDeviceGet", r);
    std::array<char, 128> name{};
    driver_.call<Cuda::cuDeviceGetName>(name.data(), static_cast<int>(name.size()), device_);
    report_.gpu_name = name.data();
    CUcontext context = nullptr;
    if (const CUresult r = driver_.call<Cuda::cuDevicePrimaryCtxRetain>(&context, device_);
        r != CUDA_SUCCESS)
      return driver_.error("cuDevicePrimaryCtxRetain", r);
    if (const CUresult r = driver_.call<Cuda::cuCtxSetCurrent>(context); r != CUDA_SUCCESS)
      return driver_.error("cuCtxSetCurrent", r);
    std::size_t total = 0;
    std::size_t free = 0;
    if (const CUresult r = driver_.call<Cuda::cuMemGetInfo_v2>(&free, &total); r != CUDA_SUCCESS)
      return driver_.error("cuMemGetInfo", r);
    report_.total_bytes = total;
    report_.free_bytes = free;
    return {};
  }

  void take_memory() {
    while (report_.held_bytes < request_.memory_bytes) {
      const std::uint64_t size =
          std::min(request_.chunk_bytes, request_.memory_bytes - report_.held_bytes);
      CUdeviceptr block = 0;
      const CUresult r = driver_.call<Cuda::cuMemAlloc_v2>(&block, static_cast<std::size_t>(size));
      if (r != CUDA_SUCCESS) {
        report_.refusal = driver_.name_of(r);
        return;
      }
      blocks_.push_back(block);
      report_.held_bytes += size;
    }
  }

  Status hold() const {
    const Nanoseconds end = clock_.now() + request_.duration;
    for (Nanoseconds left = request_.duration; left > 0; left = end - clock_.now())
      ::usleep(static_cast<useconds_t>(std::min(left, kSecond / 2) / kMicrosecond) + 1);
    return {};
  }

  Status launch_kernels() {
    CUmodule module = nullptr;
    if (const CUresult r = driver_.call<Cuda::cuModuleLoadData>(&module, kSpinPtx);
        r != CUDA_SUCCESS)
      return driver_.error("cuModuleLoadData", r);
    if (const CUresult r =
            driver_.call<Cuda::cuModuleGetFunction>(&kernel_, module, "aliquot_spin");
        r != CUDA_SUCCESS)
      return driver_.error("cuModuleGetFunction", r);
    std::vector<CUstream> streams(std::max(request_.streams, 1u));
    for (CUstream& stream : streams)
      if (const CUresult r = driver_.call<Cuda::cuStreamCreate>(&stream, 1u); r != CUDA_SUCCESS)
        return driver_.error("cuStreamCreate", r);
    const Status launched = request_.graph_nodes > 0 ? drive_graphs(streams)
                            : request_.depth > 0     ? drive_deep(streams)
                                                     : drive(streams);
    for (const CUstream stream : streams) driver_.call<Cuda::cuStreamDestroy_v2>(stream);
    driver_.call<Cuda::cuModuleUnload>(module);
    return launched;
  }

  CUresult launch(CUstream stream) const { return launch(stream, request_.kernel, 0); }
  // `kind` shows in the block's shape, as different kernels differ in theirs.
  CUresult launch(CUstream stream, Nanoseconds kernel, unsigned kind) const {
    auto length = static_cast<unsigned long long>(kernel);
    std::array<void*, 1> parameters{&length};
    return driver_.call<Cuda::cuLaunchKernel>(kernel_, 1u, 1u, 1u, 32u * (kind + 1), 1u, 1u, 0u,
                                              stream, parameters.data(), nullptr);
  }

  CUresult launch_drawn(CUstream stream) {
    const BurnMix& mix = request_.mix;
    const double choice = uniform_(random_);
    unsigned kind = 0;
    double sum = mix.classes[0].probability;
    while (kind + 1 < mix.classes.size() && choice >= sum) sum += mix.classes[++kind].probability;
    auto length = static_cast<double>(mix.classes[kind].kernel);
    if (mix.pareto) {
      length = std::min(length * std::pow(1 - uniform_(random_), -1 / 1.5) / 3.0, kLongestPareto);
    } else if (mix.sigma > 0) {
      length *= std::exp(mix.sigma * normal_(random_) - mix.sigma * mix.sigma / 2);
    }
    return launch(stream, std::max<Nanoseconds>(kMicrosecond, static_cast<Nanoseconds>(length)),
                  kind);
  }

  // Half of the depth between two events; before more is launched the half before has ended.
  struct Queue {
    CUstream stream = nullptr;
    std::array<CUevent, 2> ends{};
  };
  // On all streams in turn, so that they work side by side however little a gate lets through.
  CUresult fill_halves(const std::vector<Queue>& queues, std::uint64_t number, unsigned half) {
    const std::size_t which = number % 2;
    if (number >= 2)
      for (const Queue& queue : queues)
        if (const CUresult r = driver_.call<Cuda::cuEventSynchronize>(queue.ends[which]);
            r != CUDA_SUCCESS)
          return r;
    for (unsigned i = 0; i < half; ++i)
      for (const Queue& queue : queues) {
        if (const CUresult r = launch_drawn(queue.stream); r != CUDA_SUCCESS) return r;
        ++report_.kernels;
      }
    for (const Queue& queue : queues)
      if (const CUresult r = driver_.call<Cuda::cuEventRecord>(queue.ends[which], queue.stream);
          r != CUDA_SUCCESS)
        return r;
    return CUDA_SUCCESS;
  }

  // Keeps `depth` launches queued on every stream, until the time is over.
  Status drive_deep(const std::vector<CUstream>& streams) {
    std::vector<Queue> queues;
    for (const CUstream stream : streams) {
      queues.push_back({.stream = stream});
      for (CUevent& end : queues.back().ends)
        if (const CUresult r = driver_.call<Cuda::cuEventCreate>(&end, 2u); r != CUDA_SUCCESS)
          return driver_.error("cuEventCreate", r);
    }
    const Nanoseconds start = clock_.now();
    for (std::uint64_t halves = 0; clock_.now() - start < request_.duration; ++halves)
      if (const CUresult r = fill_halves(queues, halves, std::max(1u, request_.depth / 2));
          r != CUDA_SUCCESS)
        return driver_.error("launch", r);
    for (const CUstream stream : streams) driver_.call<Cuda::cuStreamSynchronize>(stream);
    report_.kernel_time = clock_.now() - start;
    for (Queue& queue : queues)
      for (const CUevent end : queue.ends) driver_.call<Cuda::cuEventDestroy_v2>(end);
    return {};
  }

  // Keeps some milliseconds of work queued on every stream, until the time is over.
  template <typename Launch>
  Status drive_with(const std::vector<CUstream>& streams, unsigned kernels_each, Launch one) {
    const Nanoseconds start = clock_.now();
    const auto deep = static_cast<unsigned>(
        std::clamp<Nanoseconds>(5 * kMillisecond / (request_.kernel * kernels_each), 1, 1000));
    do {
      for (unsigned i = 0; i < deep; ++i)
        for (const CUstream stream : streams) {
          if (const CUresult r = one(stream); r != CUDA_SUCCESS) return driver_.error("launch", r);
          report_.kernels += kernels_each;
        }
      for (const CUstream stream : streams)
        if (const CUresult r = driver_.call<Cuda::cuStreamSynchronize>(stream); r != CUDA_SUCCESS)
          return driver_.error("cuStreamSynchronize", r);
    } while (clock_.now() - start < request_.duration);
    report_.kernel_time = clock_.now() - start;
    return {};
  }

  Status drive(const std::vector<CUstream>& streams) {
    return drive_with(streams, 1, [this](CUstream stream) { return launch(stream); });
  }

  Status drive_graphs(const std::vector<CUstream>& streams) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    driver_.call<Cuda::cuStreamBeginCapture_v2>(streams[0], CUstreamCaptureMode(1));
    for (unsigned i = 0; i < request_.graph_nodes; ++i) (void)launch(streams[0]);
    if (const CUresult r = driver_.call<Cuda::cuStreamEndCapture>(streams[0], &graph);
        r != CUDA_SUCCESS)
      return driver_.error("cuStreamEndCapture", r);
    if (const CUresult r =
            driver_.call<Cuda::cuGraphInstantiateWithFlags>(&executable, graph, 0ull);
        r != CUDA_SUCCESS)
      return driver_.error("cuGraphInstantiate", r);
    const Status driven = drive_with(streams, request_.graph_nodes, [&](CUstream stream) {
      return driver_.call<Cuda::cuGraphLaunch>(executable, stream);
    });
    driver_.call<Cuda::cuGraphExecDestroy>(executable);
    driver_.call<Cuda::cuGraphDestroy>(graph);
    return driven;
  }

  const CudaDriver& driver_;
  const BurnRequest& request_;
  const Clock& clock_;
  BurnReport report_;
  CUdevice device_ = 0;
  CUfunction kernel_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<> uniform_;
  std::normal_distribution<> normal_;
};

// "50us" or "5ms".
std::optional<Nanoseconds> length_of(std::string_view text) {
  const Nanoseconds unit = text.ends_with("us")   ? kMicrosecond
                           : text.ends_with("ms") ? kMillisecond
                                                  : 0;
  if (unit == 0) return std::nullopt;
  text.remove_suffix(2);
  double number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{} || end != text.data() + text.size() || !(number > 0) || number > 1e7)
    return std::nullopt;
  return static_cast<Nanoseconds>(number * static_cast<double>(unit));
}
std::optional<double> part_of(std::string_view text) {
  double number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{} || end != text.data() + text.size() || !(number >= 0) || number > 1)
    return std::nullopt;
  return number;
}

}  // namespace

Result<BurnMix> parse_mix(const std::string& text) {
  const Error wrong{
      Errc::kInvalid,
      "kernels \"" + text + "\": lengths with their parts, such as \"50us:0.7,5ms:0.3\""};
  BurnMix mix;
  std::string_view rest(text);
  constexpr std::string_view kPareto = "pareto:";
  if (rest.starts_with(kPareto)) {
    mix.pareto = true;
    rest.remove_prefix(kPareto.size());
  }
  if (const std::size_t spread = rest.find('~'); spread != std::string_view::npos) {
    const auto sigma = part_of(rest.substr(spread + 1));
    if (!sigma) return wrong;
    mix.sigma = *sigma;
    rest = rest.substr(0, spread);
  }
  double sum = 0;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const std::size_t colon = entry.find(':');
    const auto length = length_of(entry.substr(0, colon));
    const auto part = colon == std::string_view::npos ? 1.0 : part_of(entry.substr(colon + 1));
    if (!length || !part) return wrong;
    mix.classes.push_back({*length, *part});
    sum += *part;
  }
  if (mix.classes.empty() || mix.classes.size() > 16 || std::abs(sum - 1) > 1e-6) return wrong;
  return mix;
}

Result<BurnReport> burn(const BurnRequest& request, const Clock& clock) {
  const auto driver = CudaDriver::load(request.libcuda);
  if (!driver) return driver.error();
  return Burn(*driver, request, clock).run();
}

}  // namespace aliquot::cli
