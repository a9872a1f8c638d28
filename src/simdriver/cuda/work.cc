#include "simdriver/cuda/work.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/clock.h"
#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/arrays.h"
#include "simdriver/cuda/call_cost.h"
#include "simdriver/cuda/callbacks.h"
#include "simdriver/cuda/modules.h"
#include "simdriver/cuda/operations.h"

namespace aliquot::simdriver {
namespace {

// A stream with this much queued waits before it takes more (a real one does at about 1024).
constexpr std::uint64_t kDeepQueue = 1u << 16;

Nanoseconds now_ns() { return MonotonicClock().now(); }

// One command into the context's ring. The server empties it whenever it is told to.
[[gnu::hot]] void push(Context& context, Command command) {
  ContextPages& pages = *context.pages;
  for (int tries = 0;
       context.tail - pages.server->head.load(std::memory_order_acquire) >= kRingSlots; ++tries) {
    if (pages.server->lost != 0) return;
    if (tries % 64 == 0) {
      if (!library().server_alive()) return;
      library().ring_bell();
    }
    usleep(20);
  }
  command.submitted_ns = now_ns();
  pages.client->ring[context.tail % kRingSlots] = command;
  pages.client->tail.store(++context.tail, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (context.tail == pages.server->wake_at.load(std::memory_order_relaxed)) library().ring_bell();
}

std::uint64_t push_command(Stream& stream, CommandOp op, const CommandArgs& a) {
  Command command{};
  command.op = op;
  command.stream = stream.slot;
  command.seq = ++stream.submitted;
  command.a = a;
  push(*stream.context, command);
  return command.seq;
}

// False: applied at once, and the host had no memory for it.
[[gnu::hot]] bool add_effect(Stream& stream, Effect effect) {
  if (stream.pending.empty() && effect.kind == Effect::Kind::kData) {
    const bool kept = !effect.run || effect.run();
    if (!kept) report_lost_data();
    stream.applied = effect.seq;
    return kept;
  }
  if (stream.pending.empty() && effect.kind == Effect::Kind::kWait &&
      !effects_pending(effect.other.stream, effect.other.seq)) {
    stream.applied = effect.seq;
    return true;
  }
  stream.pending.push_back(std::move(effect));
  note_pending(stream);
  return true;
}

void wait_for_place(Stream& stream, const Elsewhere& other) {
  const std::uint64_t seq =
      push_command(stream, CommandOp::kWait, {other.context_key, other.slot, other.seq});
  Effect effect;
  effect.kind = Effect::Kind::kWait;
  effect.seq = seq;
  effect.other = {other.stream, other.seq};
  add_effect(stream, std::move(effect));
}

bool is_over(const Stream& stream) {
  return stream.applied >= stream.submitted &&
         stream.context->pages->done(stream.slot) >= stream.submitted;
}

// The legacy default stream waits for all blocking streams of its context, and they for it.
[[gnu::hot]] void order_with_default(Stream& stream) {
  Context& context = *stream.context;
  if (stream.legacy_default) {
    for (Stream* other : context.blocking) {
      if (other->before_default == other->submitted) continue;
      other->before_default = other->submitted;
      if (!is_over(*other)) wait_for_place(stream, last_of(*other));
    }
    return;
  }
  const Stream& legacy = *context.legacy;
  if ((stream.flags & CU_STREAM_NON_BLOCKING) != 0 || stream.after_default == legacy.submitted) {
    return;
  }
  stream.after_default = legacy.submitted;
  if (!is_over(legacy)) wait_for_place(stream, last_of(legacy));
}

CUresult open_slot(Context& context, Stream& stream) {
  std::uint32_t slot = 0;
  for (; slot < context.slots.size(); ++slot) {
    // A slot serves again when the server has told that all of its last stream is done.
    const StreamSlot& candidate = context.slots[slot];
    if (!candidate.used && context.pages->published(slot) >= candidate.last_seq) break;
  }
  if (slot == kStreamSlots) return CUDA_ERROR_OUT_OF_MEMORY;
  if (slot == context.slots.size()) context.slots.emplace_back();
  context.slots[slot].used = true;
  stream.slot = slot;
  stream.submitted = stream.applied = context.slots[slot].last_seq;
  stream.before_default = stream.submitted;
  Command command{};
  command.op = CommandOp::kOpenStream;
  command.stream = slot;
  command.a = {static_cast<std::uint64_t>(static_cast<std::int64_t>(stream.priority)),
               stream.submitted};
  push(context, command);
  return CUDA_SUCCESS;
}

CUresult make_stream(Context& context, unsigned flags, int priority,
                     std::unique_ptr<Stream>& made) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = library().next_id();
  if (const CUresult result = open_slot(context, *stream)) return result;
  made = std::move(stream);
  return CUDA_SUCCESS;
}

// As an MPS client reads it; what is no percentage counts as 100.
std::uint32_t active_thread_percent() {
  const char* text = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  const double percent = text == nullptr ? 100 : std::strtod(text, nullptr);
  if (!(percent > 0 && percent <= 100)) return 100;
  return std::max(1u, static_cast<std::uint32_t>(percent));
}

template <typename T>
T* map_page(const UniqueFd& fd, int protection) {
  void* at = mmap(nullptr, sizeof(T), protection, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, sizeof(T), MADV_DONTFORK);
  return static_cast<T*>(at);
}

}  // namespace

ContextPages::~ContextPages() {
  if (client != nullptr) munmap(client, sizeof(ClientPage));
  if (server != nullptr) munmap(const_cast<ServerPage*>(server), sizeof(ServerPage));
}

CUresult open_context(DeviceView& device, unsigned flags, bool primary, Context*& context) {
  Library& lib = library();
  Answer answer;
  const CUresult result = lib.ask(
      Op::kContextCreate, ContextRequest{device.server, flags, active_thread_percent()}, &answer);
  if (result != CUDA_SUCCESS) return result;
  const auto reply = answer.as<ContextReply>();
  if (!reply || answer.fds.size() != 2) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  auto made = std::make_unique<Context>();
  made->key = reply->context;
  made->device = &device;
  made->flags = flags;
  made->primary = primary;
  made->pages = std::make_shared<ContextPages>();
  made->pages->client = map_page<ClientPage>(answer.fds[0], PROT_READ | PROT_WRITE);
  made->pages->server = map_page<const ServerPage>(answer.fds[1], PROT_READ);
  if (made->pages->client == nullptr || made->pages->server == nullptr ||
      make_stream(*made, 0, 0, made->legacy) != CUDA_SUCCESS) {
    lib.ask(Op::kContextDestroy, ContextId{reply->context});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->legacy->legacy_default = true;
  context = lib.contexts.add(std::move(made));
  return CUDA_SUCCESS;
}

void close_context(Lock& lock, Context& context) {
  Library& lib = library();
  const CallCost before = call_cost;
  stop_callbacks(lock, context);
  forget_pending(context);
  lib.streams.for_each([&](Stream& stream) {
    if (stream.context == &context) forget_capture_of(stream);
  });
  lib.ask(Op::kContextDestroy, ContextId{context.key});
  lib.streams.remove_if([&](Stream& stream) { return stream.context == &context; });
  lib.events.remove_if([&](const Event& event) { return event.context == &context; });
  free_modules(context);
  forget_arrays(context);
  free_memory_of(context);
  call_cost = before;  // all of it goes with the context, not piece by piece
  lib.contexts.remove(&context);
}

CUresult open_stream(Context& context, unsigned flags, int priority, Stream*& stream) {
  std::unique_ptr<Stream> made;
  if (const CUresult result = make_stream(context, flags, priority, made)) return result;
  if ((flags & CU_STREAM_NON_BLOCKING) == 0) context.blocking.push_back(made.get());
  stream = library().streams.add(std::move(made));
  return CUDA_SUCCESS;
}

void close_stream(Stream& stream) {
  forget_capture_of(stream);
  Context& context = *stream.context;
  // What it had done stays before later work of the default stream.
  if (stream.before_default != stream.submitted && (stream.flags & CU_STREAM_NON_BLOCKING) == 0 &&
      !is_over(stream)) {
    wait_for_place(*context.legacy, last_of(stream));
  }
  Command command{};
  command.op = CommandOp::kCloseStream;
  command.stream = stream.slot;
  push(context, command);
  context.slots[stream.slot] = {false, stream.submitted};
  std::erase(context.blocking, &stream);
  retire_stream(library().streams.remove(&stream));
}

[[gnu::hot]] CUresult resolve_stream(Lock& lock, CUstream handle, Stream*& stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number > CU_STREAM_PER_THREAD) {
    stream = library().streams.find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  } else {
    Context* context = nullptr;
    if (const CUresult result = current_context(context)) return result;
    const bool own = number == CU_STREAM_PER_THREAD || (number == 0 && per_thread_streams());
    stream = context->legacy.get();
    if (own) {
      std::unique_ptr<Stream>& mine = context->per_thread[std::this_thread::get_id()];
      if (mine == nullptr) {
        if (const CUresult result = make_stream(*context, 0, 0, mine)) return result;
        context->blocking.push_back(mine.get());
      }
      stream = mine.get();
    }
  }
  const auto pages = stream->context->pages;
  if (const auto lost = pages->server->lost.load()) return static_cast<CUresult>(lost);
  if (stream->submitted - pages->done(stream->slot) < kDeepQueue) return CUDA_SUCCESS;
  return wait_until_ended(lock, pages, stream->slot, stream->submitted - kDeepQueue / 2);
}

[[gnu::hot]] CUresult submit(Stream& stream, CommandOp op, const CommandArgs& a,
                             std::function<bool()> apply) {
  order_with_default(stream);
  const std::uint64_t seq = push_command(stream, op, a);
  if (!apply && stream.pending.empty()) {
    stream.applied = seq;
    return CUDA_SUCCESS;
  }
  Effect effect;
  effect.seq = seq;
  effect.run = std::move(apply);
  return add_effect(stream, std::move(effect)) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

void submit_hold(Stream& stream, Effect::Kind kind, std::function<bool()> run) {
  order_with_default(stream);
  Effect effect;
  effect.kind = kind;
  effect.seq = push_command(stream, CommandOp::kHold, {});
  effect.run = std::move(run);
  add_effect(stream, std::move(effect));
  start_callbacks(*stream.context);
}

void submit_wait(Stream& stream, const Elsewhere& other) {
  order_with_default(stream);
  wait_for_place(stream, other);
}

void let_go(Stream& stream, std::uint64_t seq) {
  Command command{};
  command.op = CommandOp::kLetGo;
  command.stream = stream.slot;
  command.a = {seq};
  push(*stream.context, command);
  library().ring_bell();
}

}  // namespace aliquot::simdriver
