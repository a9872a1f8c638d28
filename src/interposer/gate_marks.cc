#include "interposer/gate_marks.h"

namespace aliquot::interposer {

Nanoseconds ended_at(const Mark& mark, Nanoseconds since, Nanoseconds now) {
  const Nanoseconds foretold = since + mark.estimate_ns;
  const Nanoseconds least = foretold > mark.running_at ? foretold : mark.running_at;
  return least < now ? least : now;
}

bool Marks::add(Mark mark) {
  if (count_ == kMost) return false;
  mark.id = ++last_id_;
  marks_[count_++] = mark;
  return true;
}

unsigned Marks::heads(Mark (&out)[kStreams]) const {
  unsigned found = 0;
  for (unsigned i = 0; i < count_ && found < kStreams; ++i) {
    bool seen = false;
    for (unsigned j = 0; j < found; ++j)
      seen |= out[j].stream == marks_[i].stream && out[j].context == marks_[i].context;
    if (!seen) out[found++] = marks_[i];
  }
  return found;
}

void Marks::note_running(std::uint64_t id, Nanoseconds at) {
  for (unsigned i = 0; i < count_; ++i)
    if (marks_[i].id == id) marks_[i].running_at = at;
}

void Marks::remove(unsigned at) {
  --count_;
  for (unsigned i = at; i < count_; ++i) marks_[i] = marks_[i + 1];
}

Mark Marks::take(std::uint64_t id) {
  for (unsigned i = 0; i < count_; ++i) {
    if (marks_[i].id != id) continue;
    const Mark taken = marks_[i];
    remove(i);
    return taken;
  }
  return {};
}

Mark Marks::take_any_of(std::uint64_t context) {
  for (unsigned i = 0; i < count_; ++i)
    if (marks_[i].context == context) return take(marks_[i].id);
  return {};
}

FreeEvents::Context* FreeEvents::of(std::uint64_t context) {
  Context* unused = nullptr;
  for (Context& known : contexts_) {
    if (known.context == context) return &known;
    if (known.context == 0 && unused == nullptr) unused = &known;
  }
  if (unused != nullptr) unused->context = context;
  return unused;
}

CUevent FreeEvents::take(std::uint64_t context) {
  Context* known = of(context);
  return known != nullptr && known->free != 0 ? known->events[--known->free] : nullptr;
}

bool FreeEvents::may_make(std::uint64_t context) {
  const Context* known = of(context);
  return known != nullptr && known->made < kEach;
}

void FreeEvents::made(std::uint64_t context) {
  if (Context* known = of(context)) ++known->made;
}

void FreeEvents::give(std::uint64_t context, CUevent event) {
  if (event == nullptr) return;
  Context* known = of(context);
  if (known != nullptr && known->free < kEach) known->events[known->free++] = event;
}

CUevent FreeEvents::take_last(std::uint64_t context) {
  for (Context& known : contexts_) {
    if (known.context != context) continue;
    if (known.free != 0) return known.events[--known.free];
    known = {};
  }
  return nullptr;
}

}  // namespace aliquot::interposer
