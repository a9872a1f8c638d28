#include "simdriver/server/machine_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "simdriver/server/promises.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint32_t kContextDestroyed = 709;  // CUDA_ERROR_CONTEXT_IS_DESTROYED

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

Device::Device(unsigned gpu_index, const GpuModel& gpu_model)
    : number(gpu_index),
      index(gpu_index),
      model(gpu_model),
      shared_books(std::make_shared<DeviceBooks>(gpu_model.memory.driver_total_bytes)),
      books(*shared_books),
      timeline(gpu_model) {}

MachineState::MachineState(MachineSpec spec, const Clock& host, std::uint64_t host_budget_bytes)
    : spec_(std::move(spec)),
      clock_(host, spec_.time_scale_micro),
      board_(spec_),
      host_budget_bytes_(host_budget_bytes) {
  for (unsigned i = 0; i < spec_.gpus.size(); ++i) {
    devices_.push_back(std::make_unique<Device>(i, spec_.model_of(i)));
  }
}

Result<std::unique_ptr<MachineState>> MachineState::make(MachineSpec spec, const Clock& host,
                                                         std::uint64_t host_budget_bytes) {
  std::unique_ptr<MachineState> machine(new MachineState(std::move(spec), host, host_budget_bytes));
  auto page = SharedPage<MachinePage>::make("aliquot-sim-machine", PageWriter::kUs);
  if (!page) return page.error();
  machine->page_ = std::move(*page);
  return machine;
}

Device* MachineState::device(std::uint32_t number) {
  return number < devices_.size() && !devices_[number]->gone ? devices_[number].get() : nullptr;
}

Session& MachineState::add_session(std::unique_ptr<Session> session) {
  session->id = ++last_id_;
  return *(sessions_[session->id] = std::move(session));
}

void MachineState::end_session(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  while (!session.contexts.empty()) close_context(session, session.contexts.back());
  blocks_.forget(id, [&](const ChargeMove& move) { apply(move); });
  for (auto& gpu : devices_) gpu->books.forget(id);
  committed_bytes_ -= session.committed_bytes;
  sessions_.erase(found);
}

void MachineState::lose_contexts(unsigned index, std::int32_t result) {
  for (auto& [key, context] : contexts_)
    if (devices_[context->device]->index == index && context->server->lost == 0) {
      lose(*context, result, now());
    }
}

Result<ContextEntry*> MachineState::open_context(Session& session, std::uint32_t index,
                                                 std::uint32_t active_thread_percent) {
  Device* gpu = device(index);
  if (gpu == nullptr) return Error{Errc::kInvalid, "open a context: no such GPU"};
  auto entry = std::make_unique<ContextEntry>();
  auto client = SharedPage<ClientPage>::make("aliquot-sim-ring", PageWriter::kClient);
  if (!client) return client.error();
  auto answers = SharedPage<ServerPage>::make("aliquot-sim-answers", PageWriter::kUs);
  if (!answers) return answers.error();
  const auto charged =
      gpu->books.take(session.id, MemoryKind::kContext, gpu->model.memory.context_bytes);
  if (!charged) return Error{Errc::kExhausted, "open a context: no memory left on the GPU"};
  entry->key = ++last_id_;
  entry->session = session.id;
  entry->device = index;
  entry->charged_bytes = *charged;
  entry->client = std::move(*client);
  entry->server = std::move(*answers);
  entry->server->wake_at = kRingSlots / 2;
  // What the others on the GPU were promised no longer holds; what this one submits comes later.
  entry->last_submitted_ns = now();
  for (auto& [key, other] : contexts_)
    if (other->device == index) take_back_promises(*other);
  const auto mps = spec_.mps ? std::optional(active_thread_percent) : std::nullopt;
  gpu->timeline.open_context(entry->key, session.id, now(), mps);
  session.contexts.push_back(entry->key);
  return (contexts_[entry->key] = std::move(entry)).get();
}

bool MachineState::close_context(Session& session, ContextKey key) {
  const auto found = contexts_.find(key);
  if (found == contexts_.end() || found->second->session != session.id) return false;
  Device& gpu = *devices_[found->second->device];
  gpu.books.give(session.id, MemoryKind::kContext, found->second->charged_bytes);
  gpu.timeline.close_context(key, now());
  // Threads that still wait in it learn that there is nothing to wait for.
  found->second->server->lost = kContextDestroyed;
  found->second->server->changes.fetch_add(1, std::memory_order_release);
  wake_all(found->second->server->changes);
  contexts_.erase(found);
  std::erase(session.contexts, key);
  return true;
}

bool MachineState::commit(Session& session, std::int64_t bytes) {
  if (bytes < 0) {
    const std::uint64_t back =
        std::min(session.committed_bytes, static_cast<std::uint64_t>(-(bytes + 1)) + 1);
    session.committed_bytes -= back;
    committed_bytes_ -= back;
    return true;
  }
  if (static_cast<std::uint64_t>(bytes) > host_budget_bytes_ - committed_bytes_) return false;
  session.committed_bytes += static_cast<std::uint64_t>(bytes);
  committed_bytes_ += static_cast<std::uint64_t>(bytes);
  return true;
}

void MachineState::apply(const ChargeMove& move) {
  if (move.bytes == 0) return;
  DeviceBooks& books = devices_[move.device]->books;
  if (move.to) {
    books.hand_over(move.from, *move.to, move.kind, move.bytes);
  } else {
    books.give(move.from, move.kind, move.bytes);
  }
}

void MachineState::end_closed_exports() {
  for (const std::uint64_t block : exports_.take_closed()) {
    std::optional<ChargeMove> move;
    if (blocks_.release(block, kByDescriptor, move) && move) apply(*move);
  }
}

void MachineState::lose(ContextEntry& context, std::int32_t result, Nanoseconds at) {
  context.server->lost = static_cast<std::uint32_t>(result);
  context.changed = true;
  devices_[context.device]->timeline.close_context(context.key, at);
}

// Copies what the client has published, each command once: what is checked is what is used.
void MachineState::drain(ContextEntry& context) {
  if (context.server->lost != 0) return;
  const std::uint32_t tail = context.client->tail.load(std::memory_order_acquire);
  const Nanoseconds now = clock_.now();  // after the tail: what it shows was submitted before
  std::uint32_t waiting = tail - context.head;
  if (waiting > kRingSlots) return lose_now(context);
  if (waiting > 0) take_back_promises(context);
  for (; waiting > 0; --waiting) {
    Command command = context.client->ring[context.head % kRingSlots];
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++context.head;
    // Time of submission: never before the last one, never in the future.
    command.submitted_ns =
        std::clamp(clock_.machine_time(command.submitted_ns), context.last_submitted_ns,
                   std::max(now, context.last_submitted_ns));
    context.last_submitted_ns = command.submitted_ns;
    drained_.push_back({&context, command});
  }
  context.server->head.store(context.head, std::memory_order_release);
  context.server->wake_at.store(context.head + kRingSlots / 2, std::memory_order_release);
}

// In the order in which the clients submitted, whichever ring was read first.
void MachineState::apply_drained() {
  std::ranges::stable_sort(drained_, {},
                           [](const Drained& drained) { return drained.command.submitted_ns; });
  for (Drained& drained : drained_) {
    ContextEntry& context = *drained.context;
    if (context.server->lost != 0) continue;
    const std::optional<CrossWait> cross = cross_wait_of(context, drained.command);
    if (cross) {
      cross_waits_.push_back(*cross);
      drained.command.op = CommandOp::kHold;
    }
    if (!devices_[context.device]->timeline.apply(context.key, drained.command)) {
      lose_now(context);
    }
  }
  drained_.clear();
}

// A wait for a stream of another GPU: the engines know nothing of each other.
std::optional<MachineState::CrossWait> MachineState::cross_wait_of(const ContextEntry& context,
                                                                   const Command& command) const {
  if (command.op != CommandOp::kWait || command.a[1] >= kStreamSlots) return std::nullopt;
  const auto other = contexts_.find(command.a[0]);
  if (other == contexts_.end() || other->second->device == context.device) return std::nullopt;
  return CrossWait{context.key,
                   command.stream,
                   command.seq,
                   command.a[0],
                   static_cast<std::uint32_t>(command.a[1]),
                   command.a[2]};
}

// Lets go of what has come at `at`; true when there was any.
bool MachineState::settle_cross_waits(Nanoseconds at) {
  return std::erase_if(cross_waits_, [&](const CrossWait& wait) {
           const auto waiting = contexts_.find(wait.context);
           if (waiting == contexts_.end()) return true;
           const auto other = contexts_.find(wait.other);
           const bool come =
               other == contexts_.end() || devices_[other->second->device]->timeline.done(
                                               wait.other, wait.other_stream) >= wait.other_seq;
           if (come) {
             devices_[waiting->second->device]->timeline.let_go(wait.context, wait.stream, wait.seq,
                                                                at);
           }
           return come;
         }) > 0;
}

// GPUs that wait for each other go from event to event together; others at once.
void MachineState::advance_together(Nanoseconds to) {
  while (!cross_waits_.empty()) {
    Nanoseconds next = to;
    Nanoseconds at = 0;
    for (auto& gpu : devices_) {
      at = std::max(at, gpu->timeline.engine().last_event());
      next = std::min(next, gpu->timeline.next_event().value_or(to));
    }
    if (settle_cross_waits(std::min(at, to))) continue;
    if (next >= to) break;
    for (auto& gpu : devices_) gpu->timeline.advance(next);
  }
  for (auto& gpu : devices_) gpu->timeline.advance(to);
  settle_cross_waits(to);
}

Nanoseconds MachineState::catch_up() {
  for (auto& [key, context] : contexts_) drain(*context);
  const Nanoseconds to = clock_.now();  // after the rings: nothing in them lies ahead of it
  apply_drained();
  advance_together(to);
  for (auto& gpu : devices_) {
    for (const Ended& ended : gpu->timeline.take_ended()) {
      const auto found = contexts_.find(ended.context);
      if (found == contexts_.end()) continue;
      found->second->server->done[ended.stream].store(ended.seq, std::memory_order_release);
      found->second->changed = true;
    }
  }
  return to;
}

void MachineState::promise_where_alone() {
  std::vector<unsigned> contexts_on(devices_.size(), 0);
  for (const auto& [key, context] : contexts_) ++contexts_on[context->device];
  for (auto& [key, context] : contexts_) {
    if (contexts_on[context->device] != 1 || context->server->lost != 0) continue;
    make_promises(*context, devices_[context->device]->timeline, clock_);
  }
}

void MachineState::publish() {
  promise_where_alone();
  for (auto& [key, context] : contexts_) {
    if (!std::exchange(context->changed, false)) continue;
    context->server->changes.fetch_add(1, std::memory_order_release);
    wake_all(context->server->changes);
  }
}

// The soonest moment at which a command that somebody waits for can have ended. A lower bound is
// enough: whoever comes too early looks again, and the bound has moved.
std::optional<Nanoseconds> MachineState::next_look() const {
  std::optional<Nanoseconds> soonest;
  for (const auto& [key, context] : contexts_) {
    if (context->server->lost != 0) continue;
    const Timeline& timeline = devices_[context->device]->timeline;
    for (std::size_t i = 0; i < kWaiterSlots; ++i) {
      const Waiter& waiter = context->client->waiters[i];
      const std::uint32_t stream = waiter.stream_plus_1.load(std::memory_order_acquire) - 1;
      if (stream >= kStreamSlots || is_promised(*context, i)) continue;
      const std::uint64_t seq = waiter.seq.load(std::memory_order_relaxed);
      if (context->server->done[stream].load(std::memory_order_relaxed) >= seq) continue;
      auto earliest = timeline.earliest(key, stream, seq);
      // Held up by another GPU: its next event may let this one go on.
      if (!earliest && !cross_waits_.empty()) earliest = next_event_of_any();
      if (!earliest) continue;
      // Not yet, although the bound has passed: at the GPU's next event the bound changes.
      const Nanoseconds at = std::max(*earliest, timeline.next_event().value_or(*earliest));
      const Nanoseconds look = *earliest > timeline.engine().last_event() ? *earliest : at;
      if (!soonest || look < *soonest) soonest = look;
    }
  }
  return soonest;
}

std::optional<Nanoseconds> MachineState::next_event_of_any() const {
  std::optional<Nanoseconds> next;
  for (const auto& gpu : devices_) {
    const auto event = gpu->timeline.next_event();
    if (event && (!next || *event < *next)) next = event;
  }
  return next;
}

bool MachineState::has_work() const {
  return std::ranges::any_of(devices_, [](const auto& gpu) { return !gpu->timeline.idle(); });
}

}  // namespace aliquot::simdriver
