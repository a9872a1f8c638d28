#include "simdriver/cuda/callbacks.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/clock.h"

namespace aliquot::simdriver {
namespace {

// How often a value in memory is looked at.
constexpr std::int64_t kPollEvery = 100 * kMicrosecond;
constexpr std::int64_t kLookEvery = 50 * kMillisecond;

struct Pending {
  std::vector<Stream*> streams;  // that have pending effects
  std::vector<std::unique_ptr<Stream>> retired;
};

Pending& pending() {
  static Pending* const instance = new Pending;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

// Events recorded in a stream that goes keep the place, not the stream.
void forget_in_events(const Stream& stream) {
  library().events.for_each([&](Event& event) {
    if (event.stream == &stream) event.stream = nullptr;
  });
}

// Applies the effects at the front of a stream that need not wait; true when there were any.
bool apply_ready(Stream& stream) {
  bool any = false;
  while (!stream.pending.empty()) {
    Effect& front = stream.pending.front();
    if (front.kind == Effect::Kind::kData) {
      if (front.run && !front.run()) report_lost_data();
    } else if (front.kind == Effect::Kind::kWait) {
      if (effects_pending(front.other.stream, front.other.seq)) return any;
    } else {
      return any;
    }
    stream.applied = front.seq;
    stream.pending.pop_front();
    any = true;
  }
  return any;
}

void apply_all_ready() {
  Pending& all = pending();
  bool any = true;
  while (any) {
    any = false;
    for (Stream* stream : all.streams) any = apply_ready(*stream) || any;
  }
  std::erase_if(all.streams, [](const Stream* stream) { return stream->pending.empty(); });
  std::erase_if(all.retired, [](const auto& stream) {
    if (!stream->pending.empty()) return false;
    forget_in_events(*stream);
    return true;
  });
}

// The callback thread's next piece of work: one that may run now, else one to wait for.
struct Choice {
  Stream* ready = nullptr;
  Stream* later = nullptr;
  bool polls = false;
};

Choice choose(const Context& context) {
  Choice choice;
  for (Stream* stream : pending().streams) {
    if (stream->context != &context || stream->pending.empty()) continue;
    const Effect& front = stream->pending.front();
    if (front.kind != Effect::Kind::kHost && front.kind != Effect::Kind::kPoll) continue;
    if (!ended(*context.pages, stream->slot, front.seq - 1)) {
      choice.later = stream;
    } else if (front.kind == Effect::Kind::kHost || front.run()) {
      choice.ready = stream;
      return choice;
    } else {
      choice.polls = true;
    }
  }
  return choice;
}

void perform(Lock& lock, Stream& stream) {
  Effect& front = stream.pending.front();
  const std::uint64_t seq = front.seq;
  if (front.kind == Effect::Kind::kHost) {
    const std::function<bool()> run = std::move(front.run);
    lock.unlock();
    run();
    lock.lock();
  }
  stream.applied = seq;
  stream.pending.pop_front();
  // Data first: whoever sees the command ended sees what it did.
  let_go(stream, seq);
  apply_all_ready();
}

void run_callbacks(Context& context) {
  Lock lock = hold();
  const std::shared_ptr<ContextPages> pages = context.pages;
  while (!context.stop_callbacks && pages->server->lost == 0) {
    const Choice choice = choose(context);
    if (choice.ready != nullptr) {
      perform(lock, *choice.ready);
    } else if (choice.later != nullptr) {
      const Elsewhere place{context.key, choice.later->slot, choice.later->pending.front().seq - 1,
                            nullptr};
      wait_for_change(lock, *pages, place, choice.polls ? kPollEvery : kLookEvery);
    } else if (choice.polls) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::nanoseconds(kPollEvery));
      lock.lock();
    } else {
      library().effects_changed.wait_for(lock, std::chrono::nanoseconds(kLookEvery));
    }
  }
}

}  // namespace

void note_pending(Stream& stream) {
  auto& all = pending().streams;
  if (std::ranges::find(all, &stream) == all.end()) all.push_back(&stream);
}

bool effects_pending(const Stream* stream, std::uint64_t seq) {
  const auto& all = pending().streams;
  return stream != nullptr && std::ranges::find(all, stream) != all.end() && stream->applied < seq;
}

void retire_stream(std::unique_ptr<Stream> stream) {
  if (stream->pending.empty()) return forget_in_events(*stream);
  stream->destroyed = true;
  pending().retired.push_back(std::move(stream));
}

void start_callbacks(Context& context) {
  if (!context.callbacks.joinable()) {
    context.callbacks = std::thread([&context] { run_callbacks(context); });
  }
  library().effects_changed.notify_all();
  wake_waiters(*context.pages);
}

void stop_callbacks(Lock& lock, Context& context) {
  if (!context.callbacks.joinable()) return;
  context.stop_callbacks = true;
  library().effects_changed.notify_all();
  wake_waiters(*context.pages);
  if (context.callbacks.get_id() == std::this_thread::get_id()) {
    context.callbacks.detach();
    return;
  }
  std::thread thread = std::move(context.callbacks);
  lock.unlock();
  thread.join();
  lock.lock();
}

void forget_pending(const Context& context) {
  Pending& all = pending();
  std::erase_if(all.streams, [&](const Stream* stream) { return stream->context == &context; });
  std::erase_if(all.retired, [&](const auto& stream) { return stream->context == &context; });
}

void report_lost_data() {
  say(Say::kAlways,
      "a copy or fill found no memory of the host left; its data is lost. Free simulated memory, "
      "or give the machine more");
}

}  // namespace aliquot::simdriver
