// Subject 0x05: what libnvidia-ml asks (telemetry.h). Results are nvmlReturn_t.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "driver_abi/cuda_constants.h"
#include "driver_abi/nvml_constants.h"
#include "simdriver/server/handlers.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

// Appends `items` to the answer, behind `head`.
template <typename Head, typename Item>
std::int32_t answer_list(Call& call, const Head& head, const std::vector<Item>& items) {
  call.reply.resize(sizeof(Head) + items.size() * sizeof(Item));
  std::memcpy(call.reply.data(), &head, sizeof(Head));
  if (!items.empty())
    std::memcpy(call.reply.data() + sizeof(Head), items.data(), items.size() * sizeof(Item));
  return NVML_SUCCESS;
}

// From the machine's time to microseconds since 1970, when the host saw it: programs compare these
// with their own clock, also in slow motion. Fixed once, so that samples keep theirs.
std::int64_t epoch_us(const MachineState& machine, Nanoseconds at) {
  static const std::int64_t kOffset = [] {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(since_1970 - now).count();
  }();
  return kOffset + machine.clock().host_time(at) / 1000;
}

// The device, and if it is a whole GPU the instances in it.
std::vector<const Device*> parts_of(Call& call, const Device& device) {
  std::vector<const Device*> parts{&device};
  for (const auto& other : call.machine.devices()) {
    const bool inside = other->is_instance() && !other->gone && other->index == device.index;
    if (inside && !device.is_instance()) parts.push_back(other.get());
  }
  return parts;
}

// Memory is shared by the compute instances of a GPU instance, and counts once.
std::vector<const DeviceBooks*> books_of(const std::vector<const Device*>& parts) {
  std::vector<const DeviceBooks*> books;
  for (const Device* part : parts) {
    if (std::ranges::find(books, &part->books) == books.end()) books.push_back(&part->books);
  }
  return books;
}

std::vector<ProcessTelemetry> processes_on(Call& call, const Device& device, Nanoseconds now) {
  // A program may hold several connections; it is one process.
  std::map<std::int32_t, ProcessTelemetry> by_pid;
  const std::vector<const Device*> parts = parts_of(call, device);
  for (const DeviceBooks* books : books_of(parts)) {
    for (const auto& [id, held] : books->holders()) {
      const auto session = call.machine.sessions().find(id);
      if (session == call.machine.sessions().end()) continue;
      ProcessTelemetry& process = by_pid[session->second->pid];
      for (const std::uint64_t bytes : held) process.used_bytes += bytes;
    }
  }
  for (const auto& [id, session] : call.machine.sessions()) {
    const auto process = by_pid.find(session->pid);
    if (process == by_pid.end()) continue;
    for (const ContextKey context : session->contexts)
      for (const Device* part : parts) process->second.busy_ns += part->timeline.busy(context, now);
  }
  std::vector<ProcessTelemetry> all;
  for (const auto& [pid, process] : by_pid) {
    if (process.used_bytes == 0 || all.size() + 2 > kMostProcessesTold) continue;
    all.push_back({pid, ProcessUse::kCompute, process.used_bytes, process.busy_ns});
    // A client of MPS stands in both lists (nvidia-smi: "M+C").
    if (call.machine.spec().mps)
      all.push_back({pid, ProcessUse::kMps, process.used_bytes, process.busy_ns});
  }
  return all;
}

std::uint64_t copied_bytes(const engine::Engine& engine, engine::CopyLane lane, Nanoseconds now) {
  const double rate = engine.spec().copy[static_cast<std::size_t>(lane)].bytes_per_ns;
  return static_cast<std::uint64_t>(static_cast<double>(engine.copy_busy(lane, now)) * rate);
}

std::uint32_t newest(const std::vector<engine::UtilisationSample>& samples) {
  return samples.empty() ? 0 : samples.back().percent;
}

std::int32_t gpu_now(Call& call) {
  TelemetryRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  const Device* gpu = call.machine.device(request.gpu);
  if (gpu == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Nanoseconds now = call.machine.catch_up();
  const engine::Engine& engine = gpu->timeline.engine();
  // The last few periods are enough to hold the newest sample that can be seen.
  const Nanoseconds since = now - 4 * engine.spec().sample_period - engine.spec().sample_lag;
  const std::vector<ProcessTelemetry> processes = processes_on(call, *gpu, now);
  GpuTelemetry figures{};
  call.machine.board().fill(gpu->index, figures);
  figures.now_ns = now - call.machine.started();
  figures.busy_ns = engine.device_busy(now);
  for (const DeviceBooks* books : books_of(parts_of(call, *gpu)))
    figures.used_bytes += books->used_bytes();
  figures.sent_bytes = copied_bytes(engine, engine::CopyLane::kHostToDevice, now);
  figures.received_bytes = copied_bytes(engine, engine::CopyLane::kDeviceToHost, now);
  figures.gpu_percent = newest(engine.device_samples(since, now));
  figures.memory_percent = newest(engine.memory_samples(since, now));
  figures.process_count = static_cast<std::uint32_t>(processes.size());
  return answer_list(call, figures, processes);
}

std::int32_t switches(Call& call) {
  TelemetryRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  const Device* gpu = call.machine.device(request.gpu);
  if (gpu == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  call.machine.catch_up();
  std::vector<SwitchTelemetry> all;
  const auto& sessions = call.machine.sessions();
  for (const auto& [pair, cost] : gpu->timeline.engine().switching_between()) {
    const auto from = sessions.find(pair.first);
    const auto to = sessions.find(pair.second);
    if (from == sessions.end() || to == sessions.end() || all.size() == kMostSwitchesTold) continue;
    all.push_back({from->second->pid, to->second->pid, cost});
  }
  return answer_list(call, SwitchesReply{static_cast<std::uint32_t>(all.size()), 0}, all);
}

std::int32_t samples(Call& call) {
  SamplesRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  const Device* gpu = call.machine.device(request.gpu);
  if (gpu == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Nanoseconds now = call.machine.catch_up();
  const engine::Engine& engine = gpu->timeline.engine();
  const Nanoseconds since = call.machine.started();
  std::vector<Sample> all;
  const auto add = [&](Nanoseconds at, std::int32_t pid, std::uint32_t percent) {
    const std::int64_t at_us = epoch_us(call.machine, at);
    if (at_us > request.since_us) all.push_back({at_us, pid, percent});
  };
  if (request.kind == SampleKind::kProcesses) {
    for (const engine::ProcessSample& sample : engine.process_samples(since, now)) {
      const auto session = call.machine.sessions().find(sample.process);
      if (session != call.machine.sessions().end())
        add(sample.time, session->second->pid, sample.sm_percent);
    }
  } else if (request.kind == SampleKind::kGpu || request.kind == SampleKind::kMemory) {
    const auto list = request.kind == SampleKind::kGpu ? engine.device_samples(since, now)
                                                       : engine.memory_samples(since, now);
    for (const engine::UtilisationSample& sample : list) add(sample.time, 0, sample.percent);
  } else {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  // The youngest, where there are more than an answer holds.
  if (all.size() > kMostSamplesTold)
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMostSamplesTold));
  return answer_list(call, SamplesReply{static_cast<std::uint32_t>(all.size()), 0}, all);
}

std::int32_t events(Call& call) {
  EventsRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  const TelemetryBoard& board = call.machine.board();
  const std::vector<GpuEvent> all = board.events_after(request.after);
  return answer_list(
      call, EventsReply{board.newest_event(), static_cast<std::uint32_t>(all.size()), 0}, all);
}

// Whoever may change the machine: its owner, and root.
bool may_change(const Call& call) { return call.session.uid == geteuid() || call.session.uid == 0; }

std::int32_t set(Call& call) {
  SetRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  if (!may_change(call)) return NVML_ERROR_NO_PERMISSION;
  return call.machine.board().apply(request) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

struct XidOutcome {
  std::uint64_t xid;
  std::int32_t result;  // what the contexts of the GPU answer from then on
};

// XIDs that take the running contexts with them, and the error that programs then see. Other XIDs
// are only reported.
constexpr std::array kFatalXids{
    XidOutcome{13, CUDA_ERROR_LAUNCH_FAILED},
    XidOutcome{31, CUDA_ERROR_ILLEGAL_ADDRESS},
    XidOutcome{43, CUDA_ERROR_LAUNCH_FAILED},
    XidOutcome{45, CUDA_ERROR_LAUNCH_FAILED},
    XidOutcome{48, CUDA_ERROR_ECC_UNCORRECTABLE},
    XidOutcome{62, CUDA_ERROR_UNKNOWN},
    XidOutcome{74, CUDA_ERROR_NVLINK_UNCORRECTABLE},
    XidOutcome{79, CUDA_ERROR_UNKNOWN},
    XidOutcome{94, CUDA_ERROR_ECC_UNCORRECTABLE},
    XidOutcome{95, CUDA_ERROR_ECC_UNCORRECTABLE},
    XidOutcome{119, CUDA_ERROR_UNKNOWN},
};

void end_contexts(Call& call, unsigned gpu, std::uint64_t xid) {
  for (const XidOutcome& fatal : kFatalXids) {
    if (fatal.xid != xid) continue;
    call.machine.catch_up();
    call.machine.lose_contexts(gpu, fatal.result);
    call.machine.publish();
  }
}

std::int32_t fault(Call& call) {
  FaultRequest request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  if (!may_change(call)) return NVML_ERROR_NO_PERMISSION;
  if (!call.machine.board().apply(request)) return NVML_ERROR_INVALID_ARGUMENT;
  if (request.kind == FaultKind::kXid) end_contexts(call, request.gpu, request.value);
  if (request.kind == FaultKind::kGpuLost) end_contexts(call, request.gpu, 79);
  if (request.kind == FaultKind::kEccDouble) end_contexts(call, request.gpu, 48);
  return NVML_SUCCESS;
}

std::int32_t mig(Call& call) {
  TelemetryRequest request{};
  if (!call.as(request) || request.gpu >= call.machine.gpu_count())
    return NVML_ERROR_INVALID_ARGUMENT;
  const TelemetryBoard& board = call.machine.board();
  std::vector<MigPart> parts = board.mig_parts(request.gpu);
  for (MigPart& part : parts) {
    const Device* own =
        call.machine.instance(request.gpu, part.gpu_instance, part.compute_instance);
    if (own != nullptr) part.device = own->number;
  }
  return answer_list(
      call, MigReply{board.mig_on(request.gpu), static_cast<std::uint32_t>(parts.size())}, parts);
}

std::int32_t mig_result(MigResult result) {
  switch (result) {
    case MigResult::kDone:
      return NVML_SUCCESS;
    case MigResult::kOff:
      return NVML_ERROR_NOT_SUPPORTED;
    case MigResult::kNoSuch:
      return NVML_ERROR_NOT_FOUND;
    case MigResult::kNoRoom:
      return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case MigResult::kInUse:
      break;
  }
  return NVML_ERROR_IN_USE;
}

std::int32_t change_mig(Call& call) {
  MigChange request{};
  if (!call.as(request)) return NVML_ERROR_INVALID_ARGUMENT;
  if (request.gpu >= call.machine.gpu_count()) return NVML_ERROR_INVALID_ARGUMENT;
  const Device* gpu = call.machine.device(request.gpu);
  if (!may_change(call)) return NVML_ERROR_NO_PERMISSION;
  // As the driver: the mode changes on an idle GPU only, and no instance goes from under a program.
  if (request.action == MigAction::kSwitchMode && gpu->books.used_bytes() > 0)
    return NVML_ERROR_IN_USE;
  if (request.action == MigAction::kDestroyCompute) {
    const Device* own = call.machine.instance(request.gpu, request.first, request.second);
    if (own != nullptr && call.machine.in_use(*own)) return NVML_ERROR_IN_USE;
  }
  MigChanged reply{};
  const std::int32_t result = mig_result(call.machine.board().apply(request, reply.id));
  if (result != NVML_SUCCESS) return result;
  call.machine.follow_mig(request.gpu);
  call.answer(reply);
  return NVML_SUCCESS;
}

}  // namespace

std::int32_t handle_telemetry(Call& call) {
  switch (static_cast<TelemetryOp>(call.op)) {
    case TelemetryOp::kGpu:
      return gpu_now(call);
    case TelemetryOp::kSamples:
      return samples(call);
    case TelemetryOp::kEvents:
      return events(call);
    case TelemetryOp::kSet:
      return set(call);
    case TelemetryOp::kFault:
      return fault(call);
    case TelemetryOp::kMig:
      return mig(call);
    case TelemetryOp::kMigChange:
      return change_mig(call);
    case TelemetryOp::kSwitches:
      return switches(call);
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace aliquot::simdriver
