// Waiting for commands. A thread posts what it waits for and rings; the server either promises when
// that will have ended (the context has its GPU to itself) and the thread sleeps to that moment by
// itself, or wakes it when it has ended. Before: the server woke for every end, at the price of a
// second wake-up and 40 us (measured on two cores).
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <climits>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "simdriver/cuda/callbacks.h"
#include "simdriver/cuda/work.h"

namespace aliquot::simdriver {
namespace {

// How long a waiter sleeps before it looks whether the server still lives.
constexpr Nanoseconds kLookEvery = 50 * kMillisecond;
// And one that found no slot to say what it waits for.
constexpr Nanoseconds kLookUnseen = 100 * kMicrosecond;
// A sleep ends late by up to 70 us (measured): the last of a promised wait is spent spinning.
constexpr Nanoseconds kSleepsLate = 80 * kMicrosecond;
constexpr std::uint32_t kInterestSlot = kWaiterSlots - 1;

Nanoseconds now_ns() { return MonotonicClock().now(); }

// Returns early when the word changes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds most) {
  const timespec wait{most / kSecond, most % kSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &wait, nullptr, 0);
}

struct Promised {
  Nanoseconds until = 0;
  std::uint32_t tail = 0;
  bool operator==(const Promised&) const = default;
};

enum class Told { kWhenReached, kWhenEnded };

// Waiter slots are few; a thread that finds none just looks more often.
class WaiterSlot {
 public:
  WaiterSlot(ContextPages& pages, std::uint32_t stream, std::uint64_t seq, Told told)
      : page_(*pages.server), place_(place_in(stream, seq)) {
    for (std::uint32_t i = 0; i < kInterestSlot && waiter_ == nullptr; ++i) {
      Waiter& candidate = pages.client->waiters[i];
      std::uint32_t free = 0;
      // Claimed by a stream number that the server ignores until the seq is there.
      if (candidate.stream_plus_1.compare_exchange_strong(free, UINT32_MAX)) {
        waiter_ = &candidate;
        index_ = i;
      }
    }
    if (waiter_ == nullptr) return;
    waiter_->takes_promise.store(told == Told::kWhenReached ? 1 : 0, std::memory_order_relaxed);
    waiter_->seq.store(seq, std::memory_order_relaxed);
    waiter_->stream_plus_1.store(stream + 1, std::memory_order_release);
  }
  WaiterSlot(const WaiterSlot&) = delete;
  WaiterSlot& operator=(const WaiterSlot&) = delete;
  ~WaiterSlot() {
    if (waiter_ != nullptr) waiter_->stream_plus_1.store(0, std::memory_order_release);
  }
  bool found() const { return waiter_ != nullptr; }
  std::optional<Promised> promise() const {
    if (waiter_ == nullptr) return std::nullopt;
    const Promise& promise = page_.promises[index_];
    if (promise.place.load(std::memory_order_acquire) != place_) return std::nullopt;
    const Promised read{promise.until_ns.load(std::memory_order_acquire),
                        promise.tail.load(std::memory_order_acquire)};
    if (promise.place.load(std::memory_order_acquire) != place_) return std::nullopt;
    return read;
  }

 private:
  const ServerPage& page_;
  const std::uint64_t place_;
  Waiter* waiter_ = nullptr;
  std::uint32_t index_ = 0;
};

// False: something of the context changed before.
bool sleep_to(Nanoseconds until, const std::atomic<std::uint32_t>& changes, std::uint32_t seen) {
  const Nanoseconds sleep = until - kSleepsLate - now_ns();
  if (sleep > 0) sleep_on(changes, seen, sleep);
  while (changes.load(std::memory_order_acquire) == seen) {
    if (now_ns() >= until) return true;
  }
  return false;
}

// One wait, from its ring to its end. Without the lock, but for the moment in which a promise that
// has come due is judged: nothing can be submitted meanwhile, so what comes later is stamped later.
class Wait {
 public:
  Wait(Lock& lock, ContextPages& pages, std::uint32_t slot, std::uint64_t seq)
      : lock_(lock),
        pages_(pages),
        slot_(slot),
        seq_(seq),
        waiter_(pages, slot, seq, Told::kWhenReached) {}

  CUresult run() {
    std::uint32_t seen = pages_.server->changes.load(std::memory_order_acquire);
    library().ring_bell();
    lock_.unlock();
    CUresult result = CUDA_SUCCESS;
    while (pages_.done(slot_) < seq_) {
      result = static_cast<CUresult>(pages_.server->lost.load());
      if (result != CUDA_SUCCESS) break;
      const auto promise = waiter_.promise();
      if (promise && promise != doubted_) {
        if (sleep_to(promise->until, pages_.server->changes, seen)) judge(*promise);
      } else if (!library().server_alive()) {
        result = CUDA_ERROR_SYSTEM_NOT_READY;
        break;
      } else {
        sleep_on(pages_.server->changes, seen, waiter_.found() ? kLookEvery : kLookUnseen);
      }
      seen = pages_.server->changes.load(std::memory_order_acquire);
    }
    lock_.lock();
    return result;
  }

 private:
  void judge(const Promised& promise) {
    lock_.lock();
    const bool holds = waiter_.promise() == promise &&
                       pages_.client->tail.load(std::memory_order_relaxed) == promise.tail &&
                       pages_.server->lost.load() == 0;
    if (holds) {
      std::atomic<std::uint64_t>& known = pages_.known[slot_];
      if (known.load(std::memory_order_relaxed) < seq_) known.store(seq_);
      pages_.ahead = true;
    }
    lock_.unlock();
    if (holds) return;
    doubted_ = promise;  // the server sees what was submitted, and says anew
    library().ring_bell();
  }

  Lock& lock_;
  ContextPages& pages_;
  const std::uint32_t slot_;
  const std::uint64_t seq_;
  const WaiterSlot waiter_;
  std::optional<Promised> doubted_;
};

}  // namespace

// What waited for another stream has ended, so that one has too: the server has to tell before
// anybody who asks about it hears that it has not. It does before it answers any request.
bool ended(ContextPages& pages, std::uint32_t slot, std::uint64_t seq) {
  if (pages.done(slot) < seq && std::exchange(pages.ahead, false)) {
    library().ask(Op::kMark, MarkRequest{});
  }
  return pages.done(slot) >= seq;
}

void show_interest(Context& context, std::uint32_t slot, std::uint64_t seq) {
  const std::uint64_t place = static_cast<std::uint64_t>(slot) << 48 ^ seq;
  if (context.queried == place) return;
  context.queried = place;
  Waiter& waiter = context.pages->client->waiters[kInterestSlot];
  waiter.seq.store(seq, std::memory_order_relaxed);
  waiter.stream_plus_1.store(slot + 1, std::memory_order_release);
  library().ring_bell();
}

// Ends early when anything of the context changes: the caller looks again.
void wait_for_change(Lock& lock, ContextPages& pages, const Elsewhere& place, std::int64_t most) {
  const WaiterSlot waiter(pages, place.slot, place.seq, Told::kWhenEnded);
  const std::uint32_t seen = pages.server->changes.load(std::memory_order_acquire);
  if (pages.done(place.slot) >= place.seq || pages.server->lost != 0) return;
  library().ring_bell();
  lock.unlock();
  sleep_on(pages.server->changes, seen, waiter.found() ? most : kLookUnseen);
  lock.lock();
}

void wake_waiters(ContextPages& pages) {
  syscall(SYS_futex, &pages.server->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): others may let go of the pages meanwhile
CUresult wait_until_ended(Lock& lock, std::shared_ptr<ContextPages> pages, std::uint32_t slot,
                          std::uint64_t seq) {
  if (pages->done(slot) >= seq) return static_cast<CUresult>(pages->server->lost.load());
  return Wait(lock, *pages, slot, seq).run();
}

CUresult synchronise(Lock& lock, Stream& stream) {
  return wait_until_ended(lock, stream.context->pages, stream.slot, stream.submitted);
}

CUresult synchronise(Lock& lock, Context& context) {
  // Only what was submitted by now; other threads may go on submitting.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> places;
  const auto add = [&](const Stream& stream) {
    if (stream.context == &context) places.emplace_back(stream.slot, stream.submitted);
  };
  add(*context.legacy);
  for (const auto& [thread, stream] : context.per_thread) add(*stream);
  library().streams.for_each(add);
  for (std::uint32_t slot = 0; slot < context.slots.size(); ++slot) {
    if (!context.slots[slot].used) places.emplace_back(slot, context.slots[slot].last_seq);
  }
  const auto pages = context.pages;
  for (const auto& [slot, seq] : places) {
    if (const CUresult result = wait_until_ended(lock, pages, slot, seq)) return result;
  }
  return static_cast<CUresult>(pages->server->lost.load());
}

}  // namespace aliquot::simdriver
