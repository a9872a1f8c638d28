#include "inventory/driver_look.h"

#include <utility>

#include "format/described.h"
#include "inventory/bounded_child.h"

namespace aliquot::inventory {

template <typename V>
static void describe(V& v, NvmlSystem& system) {
  v("driver_version", system.driver_version), v("nvml_version", system.nvml_version);
  v("cuda_version", system.cuda_version);
}

template <typename V>
static void describe(V& v, NvmlGpu& gpu) {
  v("uuid", gpu.uuid), v("name", gpu.name), v("bus_id", gpu.bus_id), v("serial", gpu.serial);
  v("minor", gpu.minor), v("numa", gpu.numa), v("cpus", gpu.cpus);
  v("compute_major", gpu.compute_major), v("compute_minor", gpu.compute_minor);
  v("pcie_max_generation", gpu.pcie_max_generation), v("pcie_max_width", gpu.pcie_max_width);
  v("mig_capable", gpu.mig_capable), v("virtualization", gpu.virtualization);
}

template <typename V>
static void describe(V& v, NvmlProcess& process) {
  auto kind = static_cast<unsigned>(process.kind);
  v("pid", process.pid), v("bytes", process.bytes), v("kind", kind);
  process.kind = static_cast<ProcessKind>(kind);
}

template <typename V>
static void describe(V& v, NvmlMemory& memory) {
  v("total", memory.total_bytes), v("reserved", memory.reserved_bytes);
  v("used", memory.used_bytes), v("free", memory.free_bytes);
}

template <typename V>
static void describe(V& v, NvmlState& s) {
  v("memory", s.memory), v("processes", s.processes);
  v("gpu_percent", s.gpu_percent), v("memory_percent", s.memory_percent);
  v("power_mw", s.power_mw), v("power_limit_mw", s.power_limit_mw), v("energy_mj", s.energy_mj);
  v("temperature_c", s.temperature_c), v("fan_percent", s.fan_percent);
  v("sm_mhz", s.sm_mhz), v("sm_max_mhz", s.sm_max_mhz), v("memory_mhz", s.memory_mhz);
  v("clock_reasons", s.clock_reasons), v("performance_state", s.performance_state);
  v("pcie_generation", s.pcie_generation), v("pcie_width", s.pcie_width);
  v("persistence", s.persistence), v("ecc", s.ecc), v("ecc_uncorrected", s.ecc_uncorrected);
  v("mig", s.mig), v("bar1_bytes", s.bar1_bytes), v("bar1_used_bytes", s.bar1_used_bytes);
  v("compute_mode", s.compute_mode);
}

template <typename V>
static void describe(V& v, GpuAnswer& answer) {
  v("index", answer.index), v("gpu", answer.gpu), v("state", answer.state);
  v("trouble", answer.trouble);
}

template <typename V>
static void describe(V& v, DriverAnswer& answer) {
  v("system", answer.system), v("gpus", answer.gpus);
}

// A child's answer or its error, so that the error's code comes through too.
struct Reply {
  std::string text;
  std::string trouble;
  int code = 0;
};

template <typename V>
static void describe(V& v, Reply& reply) {
  v("text", reply.text), v("trouble", reply.trouble), v("code", reply.code);
}

namespace {

std::string reply_of(const Result<std::string>& answer) {
  Reply reply;
  if (answer) {
    reply.text = *answer;
  } else {
    reply.trouble = answer.error().message;
    reply.code = static_cast<int>(answer.error().code);
  }
  return format::write_described(reply).dump();
}

Result<std::string> received(Result<BoundedChild>& child, Nanoseconds deadline) {
  auto text = child ? child->wait(deadline) : Result<std::string>(child.error());
  if (!text) return text.error();
  Reply reply;
  const auto json = format::parse_json(*text, "a child");
  const Status read = json ? format::read_described(*json, "a child", reply) : json.error();
  if (!read) return read.error();
  if (!reply.trouble.empty()) return Error{static_cast<Errc>(reply.code), reply.trouble};
  return reply.text;
}

template <typename T>
Result<T> parsed(const Result<std::string>& text) {
  if (!text) return text.error();
  T value;
  const auto json = format::parse_json(*text, "a driver's answer");
  const Status read =
      json ? format::read_described(*json, "a driver's answer", value) : Status(json.error());
  if (!read) return read.error();
  return value;
}

enum class Depth { kIdentity, kState };

// One GPU that does not answer must not hide the others.
GpuAnswer ask(Nvml& nvml, unsigned index, Depth depth) {
  GpuAnswer answer;
  answer.index = index;
  const auto gpu = nvml.gpu(index);
  if (gpu)
    answer.gpu = *gpu;
  else
    answer.trouble = gpu.error().message;
  if (!gpu || depth == Depth::kIdentity) return answer;
  const auto state = nvml.state(index);
  if (state)
    answer.state = *state;
  else
    answer.trouble = state.error().message;
  return answer;
}

Result<std::string> ask_all(const NvmlOpener& open, bool with_gpus) {
  const auto nvml = open();
  if (!nvml) return nvml.error();
  const auto system = (*nvml)->system();
  if (!system) return system.error();
  const auto count = (*nvml)->count();
  if (!count) return count.error();
  DriverAnswer all{*system, std::vector<GpuAnswer>(*count)};
  for (unsigned i = 0; i < *count && with_gpus; ++i) all.gpus[i] = ask(**nvml, i, Depth::kState);
  return format::write_described(all).dump();
}

// All at once, one child for each.
std::vector<Result<GpuAnswer>> ask_each(const NvmlOpener& open, const std::vector<unsigned>& gpus,
                                        Depth depth, Nanoseconds limit) {
  std::vector<Result<BoundedChild>> children;
  for (const unsigned gpu : gpus)
    children.push_back(BoundedChild::begin([&open, gpu, depth] {
      const auto nvml = open();
      return reply_of(
          nvml ? Result<std::string>(format::write_described(ask(**nvml, gpu, depth)).dump())
               : nvml.error());
    }));
  const Nanoseconds deadline = MonotonicClock().now() + limit;
  std::vector<Result<GpuAnswer>> answers;
  for (auto& child : children) answers.push_back(parsed<GpuAnswer>(received(child, deadline)));
  return answers;
}

void ask_again_one_by_one(const NvmlOpener& open, const LookLimits& limits, DriverAnswer& all) {
  std::vector<unsigned> gpus, silent;
  for (unsigned i = 0; i < all.gpus.size(); ++i) gpus.push_back(i);
  const auto answers = ask_each(open, gpus, Depth::kState, limits.gpu);
  for (const unsigned i : gpus) {
    if (answers[i]) {
      all.gpus[i] = *answers[i];
      continue;
    }
    all.gpus[i].index = i;
    all.gpus[i].trouble = "NVML does not answer about it: " + answers[i].error().message;
    silent.push_back(i);
  }
  const auto names = ask_each(open, silent, Depth::kIdentity, limits.name);
  for (std::size_t i = 0; i < silent.size(); ++i)
    if (names[i]) all.gpus[silent[i]].gpu = names[i]->gpu;
}

}  // namespace

Result<std::string> bounded(const std::function<Result<std::string>()>& work, Nanoseconds limit) {
  auto child = BoundedChild::begin([&work] { return reply_of(work()); });
  return received(child, MonotonicClock().now() + limit);
}

Result<DriverAnswer> look_at_driver(const NvmlOpener& open, const LookLimits& limits) {
  auto all = bounded([&] { return ask_all(open, true); }, limits.all);
  if (all || all.error().message != kNoAnswer) return parsed<DriverAnswer>(all);
  auto head = bounded([&] { return ask_all(open, false); }, limits.driver);
  if (!head)
    return Error{head.error().code,
                 "ask the driver: " + head.error().message + "; `aliquot doctor` says more"};
  auto answer = parsed<DriverAnswer>(head);
  if (!answer) return answer;
  ask_again_one_by_one(open, limits, *answer);
  return answer;
}

}  // namespace aliquot::inventory
