#include "simdriver/server/promises.h"

namespace aliquot::simdriver {

void make_promises(ContextEntry& context, const Timeline& gpu, const MachineClock& clock) {
  ServerPage& page = *context.server;
  for (std::size_t i = 0; i < kWaiterSlots; ++i) {
    const Waiter& waiter = context.client->waiters[i];
    const std::uint32_t stream = waiter.stream_plus_1.load(std::memory_order_acquire) - 1;
    if (stream >= kStreamSlots || waiter.takes_promise.load(std::memory_order_relaxed) == 0) {
      continue;
    }
    const std::uint64_t seq = waiter.seq.load(std::memory_order_relaxed);
    Promise& promise = page.promises[i];
    if (promise.place.load(std::memory_order_relaxed) == place_in(stream, seq)) continue;
    if (page.done[stream].load(std::memory_order_relaxed) >= seq) continue;
    const auto end = gpu.certain_end(context.key, stream, seq);
    if (!end) continue;
    promise.place.store(0, std::memory_order_release);
    promise.until_ns.store(clock.host_time(*end), std::memory_order_relaxed);
    promise.tail.store(context.head, std::memory_order_relaxed);
    promise.place.store(place_in(stream, seq), std::memory_order_release);
    context.promised = true;
    context.changed = true;
  }
}

void take_back_promises(ContextEntry& context) {
  if (!context.promised) return;
  for (Promise& promise : context.server->promises) promise.place.store(0);
  context.promised = false;
  context.changed = true;
}

bool is_promised(const ContextEntry& context, std::size_t index) {
  if (!context.promised) return false;
  const Waiter& waiter = context.client->waiters[index];
  const std::uint32_t stream = waiter.stream_plus_1.load(std::memory_order_relaxed) - 1;
  return context.server->promises[index].place.load(std::memory_order_relaxed) ==
         place_in(stream, waiter.seq.load(std::memory_order_relaxed));
}

}  // namespace aliquot::simdriver
