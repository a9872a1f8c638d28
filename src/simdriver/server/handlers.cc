#include "simdriver/server/handlers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "simdriver/server/device_info.h"

namespace aliquot::simdriver {
namespace {

struct Subject {
  std::uint32_t high_byte;
  std::int32_t (*handle)(Call&);
};

constexpr std::array kSubjects{
    Subject{0x01, handle_session}, Subject{0x02, handle_context},   Subject{0x03, handle_memory},
    Subject{0x04, handle_work},    Subject{0x05, handle_telemetry}, Subject{0x06, handle_control},
};

// A sparse file for device memory, whose size nobody can change.
UniqueFd memory_file(const char* name, std::uint64_t bytes) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file && (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
               fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
    file.reset();
  }
  return file;
}

std::int32_t hello(Call& call) {
  HelloRequest request{};
  if (!call.as(request) || request.version != kChannelVersion) return kInvalidValue;
  if (call.session.greeted) return kInvalidValue;
  const UniqueFd arena = memory_file("aliquot-sim-memory", kArenaBytes);
  if (!arena) return kSimulatorOutOfHostMemory;
  call.session.greeted = true;
  // The arena stays with the client alone: its pages go when the process does.
  call.fds.emplace_back(dup(arena.get()));
  call.reply_fds = {call.fds.back().get(), call.session.doorbell.get(), call.machine.page().fd()};
  HelloReply reply{};
  reply.version = kChannelVersion;
  reply.device_count = call.machine.gpu_count();
  reply.cuda_version = call.machine.spec().driver.cuda;
  reply.time_scale_micro = call.machine.spec().time_scale_micro;
  reply.timed_kernels = static_cast<std::uint32_t>(call.machine.spec().kernel_block_ns.size());
  reply.session = call.session.id;
  return call.answer(reply);
}

// What the block costs: nothing, what is taken now, or what the session holds already.
std::optional<std::uint64_t> block_charge(Call& call, Device& gpu, const MemoryRequest& request) {
  if (request.kind == MemoryKind::kCell) return 0;
  if (call.op == Op::kBlockConvert &&
      !gpu.books.give(call.session.id, request.kind, request.bytes)) {
    return std::nullopt;
  }
  return gpu.books.take(call.session.id, request.kind, request.bytes);
}

std::int32_t create_block(Call& call, const MemoryRequest& request) {
  Device& gpu = *call.machine.device(request.device);
  Block block;
  block.device = request.device;
  block.kind = request.kind;
  block.payer = call.session.id;
  if (getrandom(block.key.key.data(), block.key.key.size(), 0) !=
      static_cast<ssize_t>(block.key.key.size())) {
    return kSimulatorOutOfHostMemory;
  }
  const auto charged = block_charge(call, gpu, request);
  if (!charged) return kOutOfMemory;
  block.bytes = *charged;
  constexpr std::uint64_t kCellBytes = 4096;
  block.file = memory_file("aliquot-sim-block", *charged == 0 ? kCellBytes : *charged);
  if (!block.file) {
    if (*charged != 0) gpu.books.give(call.session.id, request.kind, *charged);
    return kSimulatorOutOfHostMemory;
  }
  if (request.kind != MemoryKind::kCell && call.op == Op::kBlockCreate) {
    call.cost_ns = gpu.model.timing.alloc_ns;
  }
  const Block& added = call.machine.blocks().add(std::move(block));
  call.reply_fds = {added.file.get()};
  return call.answer(BlockReply{added.key, added.bytes, added.device, added.kind});
}

std::int32_t opened(Call& call, const Block* block) {
  if (block == nullptr) return kInvalidHandle;
  call.reply_fds = {block->file.get()};
  return call.answer(BlockReply{block->key, block->bytes, block->device, block->kind});
}

std::int32_t open_block_by_fd(Call& call) {
  if (call.fds.size() != 1) return kInvalidValue;
  const auto block = call.machine.exports().block_of(call.fds.front().get());
  if (!block) return kInvalidValue;
  std::optional<ChargeMove> move;
  const Block* found = call.machine.blocks().open_exported(*block, call.session.id, move);
  if (move) call.machine.apply(*move);
  return opened(call, found);
}

std::int32_t export_block(Call& call, std::uint64_t block) {
  if (!call.machine.blocks().add_export(block, call.session.id)) return kInvalidHandle;
  UniqueFd exported = call.machine.exports().add(block);
  if (!exported) {
    std::optional<ChargeMove> none;  // the session still holds it
    call.machine.blocks().release(block, kByDescriptor, none);
    return kSimulatorOutOfHostMemory;
  }
  // Ours goes when the answer is sent.
  call.reply_fds = {exported.get()};
  call.fds.push_back(std::move(exported));
  return kSuccess;
}

std::int32_t block_request(Call& call) {
  if (call.op == Op::kBlockOpenFd) return open_block_by_fd(call);
  if (call.op == Op::kBlockOpenKey) {
    BlockKey key{};
    if (!call.as(key)) return kInvalidValue;
    return opened(call, call.machine.blocks().open(key, call.session.id));
  }
  BlockId id{};
  if (!call.as(id)) return kInvalidValue;
  if (call.op == Op::kBlockExport) return export_block(call, id.block);
  if (call.op == Op::kBlockAddHold) {
    return call.machine.blocks().add_hold(id.block, call.session.id) ? kSuccess : kInvalidHandle;
  }
  std::optional<ChargeMove> move;
  if (!call.machine.blocks().release(id.block, call.session.id, move)) return kInvalidHandle;
  if (move) {
    call.machine.apply(*move);
    if (!move->to && move->bytes != 0) {
      call.cost_ns = call.machine.device(move->device)->model.timing.free_ns;
    }
  }
  return kSuccess;
}

// NVIDIA's MPS takes so many contexts a GPU from Volta on (60 from CUDA 13.1, which is not
// simulated).
bool mps_is_full(Call& call, const Device& gpu) {
  constexpr std::ptrdiff_t kMostClients = 48;
  return call.machine.spec().mps &&
         std::ranges::count_if(call.machine.contexts(), [&](const auto& entry) {
           return entry.second->device == gpu.number;
         }) >= kMostClients;
}

// What the compute mode lets in: everybody, one process (MPS with all its clients is one), nobody.
// A lost GPU takes nobody, and one that is cut by MIG only by its instances.
bool lets_in(Call& call, const Device& gpu) {
  constexpr std::uint32_t kProhibited = 2;
  constexpr std::uint32_t kExclusiveProcess = 3;
  const std::uint32_t mode = call.machine.board().compute_mode(gpu.index);
  if (call.machine.board().lost(gpu.index) || mode == kProhibited) return false;
  if (!gpu.is_instance() && call.machine.board().mig_on(gpu.index)) return false;
  if (mode != kExclusiveProcess || call.machine.spec().mps) return true;
  for (const auto& [key, context] : call.machine.contexts()) {
    const auto owner = call.machine.sessions().find(context->session);
    if (context->device == gpu.number && owner != call.machine.sessions().end() &&
        owner->second->pid != call.session.pid)
      return false;
  }
  return true;
}

std::int32_t kernel_time(Call& call) {
  const std::string_view name(reinterpret_cast<const char*>(call.payload.data()),
                              call.payload.size());
  const auto& told = call.machine.spec().kernel_block_ns;
  const auto found = told.find(name);
  return call.answer(KernelTime{found == told.end() ? 0 : found->second});
}

}  // namespace

std::int32_t handle_session(Call& call) {
  if (call.op == Op::kHello) return hello(call);
  if (call.op == Op::kKernelTime) return kernel_time(call);
  DeviceRequest request{};
  if (call.op != Op::kDeviceInfo || !call.as(request)) return kInvalidValue;
  const Device* device = call.machine.device(request.device);
  if (device == nullptr) return kInvalidDevice;
  if (device->is_instance()) {
    return call.answer(
        instance_info(call.machine.spec(), device->index, device->model, device->uuid));
  }
  DeviceInfo info = device_info(call.machine.spec(), device->index);
  info.mig = call.machine.board().mig_on(device->index) ? 1 : 0;
  return call.answer(info);
}

std::int32_t handle_context(Call& call) {
  if (call.op == Op::kContextCreate) {
    ContextRequest request{};
    if (!call.as(request)) return kInvalidValue;
    if (request.active_thread_percent < 1 || request.active_thread_percent > 100) {
      return kInvalidValue;
    }
    const Device* gpu = call.machine.device(request.device);
    if (gpu == nullptr) return kInvalidDevice;
    if (!lets_in(call, *gpu)) return kDeviceUnavailable;
    if (mps_is_full(call, *gpu)) return kMpsMaxClientsReached;
    const Result<ContextEntry*> context =
        call.machine.open_context(call.session, request.device, request.active_thread_percent);
    if (!context) {
      return context.error().code == Errc::kExhausted ? kOutOfMemory : kSimulatorOutOfHostMemory;
    }
    call.reply_fds = {(*context)->client.fd(), (*context)->server.fd()};
    call.cost_ns = gpu->model.timing.context_create_ns;
    return call.answer(ContextReply{(*context)->key});
  }
  ContextId id{};
  if (call.op != Op::kContextDestroy || !call.as(id)) return kInvalidValue;
  return call.machine.close_context(call.session, id.context) ? kSuccess : kInvalidContext;
}

std::int32_t handle_memory(Call& call) {
  if (call.op == Op::kCommit) {
    CommitRequest request{};
    if (!call.as(request)) return kInvalidValue;
    return call.machine.commit(call.session, request.bytes) ? kSuccess : kSimulatorOutOfHostMemory;
  }
  if (call.op == Op::kMemoryInfo) {
    DeviceRequest request{};
    if (!call.as(request)) return kInvalidValue;
    const Device* gpu = call.machine.device(request.device);
    if (gpu == nullptr) return kInvalidDevice;
    return call.answer(MemoryInfo{gpu->books.free_bytes(), gpu->books.total_bytes()});
  }
  const bool makes_block = call.op == Op::kBlockCreate || call.op == Op::kBlockConvert;
  if (call.op != Op::kMemoryTake && call.op != Op::kMemoryGive && !makes_block) {
    return block_request(call);
  }
  MemoryRequest request{};
  if (!call.as(request)) return kInvalidValue;
  Device* gpu = call.machine.device(request.device);
  if (gpu == nullptr) return kInvalidDevice;
  // A context's bytes are charged by the server itself.
  const bool cell = request.kind == MemoryKind::kCell && call.op == Op::kBlockCreate;
  if (request.kind == MemoryKind::kContext || (request.kind >= MemoryKind::kCount && !cell)) {
    return kInvalidValue;
  }
  if (request.bytes == 0) return kInvalidValue;
  if (makes_block) return create_block(call, request);
  if (call.op == Op::kMemoryGive) {
    call.cost_ns = gpu->model.timing.free_ns;
    return gpu->books.give(call.session.id, request.kind, request.bytes) ? kSuccess : kInvalidValue;
  }
  const auto charged = gpu->books.take(call.session.id, request.kind, request.bytes);
  if (!charged) return kOutOfMemory;
  call.cost_ns = gpu->model.timing.alloc_ns;
  return call.answer(MemoryRequest{request.device, request.kind, *charged});
}

std::int32_t handle_work(Call& call) {
  MarkRequest request{};
  if (call.op != Op::kMark || !call.as(request)) return kInvalidValue;
  const auto found = call.machine.contexts().find(request.context);
  if (found == call.machine.contexts().end()) return kInvalidContext;
  const Device& gpu = *call.machine.devices()[found->second->device];
  const auto ended = gpu.timeline.mark(request.context, request);
  return call.answer(MarkReply{ended.value_or(-1)});
}

std::int32_t handle_control(Call& call) {
  // Whoever may change the machine: its owner, and root.
  if (call.session.uid != geteuid() && call.session.uid != 0) return kNotSupported;
  if (call.op == Op::kShutdown) {
    call.machine.stop_requested = true;
    return kSuccess;
  }
  MachinePage& page = *call.machine.page();
  if (call.op == Op::kClearFaults) {
    page.generation.fetch_add(1);
    page.failures.fill({});
    page.generation.fetch_add(1, std::memory_order_release);
    page.through_dlsym = 0;
    return kSuccess;
  }
  if (call.op == Op::kLookups) {
    LookupMode mode{};
    if (!call.as(mode) || mode.through_dlsym > 1) return kInvalidValue;
    page.through_dlsym = mode.through_dlsym;
    return kSuccess;
  }
  FailNth fault{};
  if (call.op != Op::kFailNth || !call.as(fault) || fault.symbol.back() != 0 || fault.nth == 0) {
    return kInvalidValue;
  }
  for (MachinePage::Failure& slot : page.failures) {
    if (slot.nth != 0) continue;
    page.generation.fetch_add(1);
    slot = {fault.symbol, fault.nth, fault.result};
    page.generation.fetch_add(1, std::memory_order_release);
    return kSuccess;
  }
  return kOutOfMemory;
}

std::int32_t handle(Call& call) {
  const std::uint32_t subject = static_cast<std::uint32_t>(call.op) >> 8;
  for (const Subject& entry : kSubjects) {
    if (entry.high_byte != subject) continue;
    // Nobody holds anything before the greeting; looking is allowed.
    if (!call.session.greeted && (subject == 0x02 || subject == 0x03) &&
        call.op != Op::kMemoryInfo) {
      return kInvalidValue;
    }
    return entry.handle(call);
  }
  return kNotSupported;
}

}  // namespace aliquot::simdriver
