// Marks: events of the driver that tell when launched work has ended, and how long it took.
//
// A mark stands for one launch and those before it that have no mark of their own. The events are
// kept for reuse, by context: they end with it. This is bookkeeping alone, under the gate's lock;
// making, recording and asking events is its user's business (gate.cc, gate_looks.cc).
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "driver_abi/cuda_types.h"

namespace aliquot::interposer {

struct Mark {
  std::uint64_t id = 0;     // 0: none
  CUevent start = nullptr;  // recorded before the launch, where its duration is wanted
  CUevent end = nullptr;
  std::uint64_t context = 0;
  CUstream stream = nullptr;
  std::uint32_t count = 0;  // launches it stands for
  Nanoseconds estimate_ns = 0;
  std::uint64_t key = 0;       // of the launch that is measured
  Nanoseconds running_at = 0;  // last seen not to have ended
};

// When the work ended that is found to have ended `now`, if its head began at `since`: as foretold,
// but not before it was last seen running. Were it `now`, the next end would be foretold late by
// this wake's latency, the one after by two of them, and soon the device would run dry.
Nanoseconds ended_at(const Mark& mark, Nanoseconds since, Nanoseconds now);

class Marks {
 public:
  static constexpr unsigned kMost = 128;
  static constexpr unsigned kStreams = 32;

  unsigned count() const { return count_; }
  // Of the oldest mark; 0: there is none.
  Nanoseconds first_estimate() const { return count_ == 0 ? 0 : marks_[0].estimate_ns; }
  // False: too many are outstanding; the launch stays unmarked.
  bool add(Mark mark);
  // The oldest mark of each stream, of `kStreams` streams at most: only these can be next.
  unsigned heads(Mark (&out)[kStreams]) const;
  void note_running(std::uint64_t id, Nanoseconds at);
  // Takes the mark out; id 0: somebody else has.
  Mark take(std::uint64_t id);
  // One mark of the context after another; id 0: there is none left.
  Mark take_any_of(std::uint64_t context);

 private:
  void remove(unsigned at);

  Mark marks_[kMost];  // oldest first
  unsigned count_ = 0;
  std::uint64_t last_id_ = 0;
};

// Events that no mark uses now.
class FreeEvents {
 public:
  static constexpr unsigned kContexts = 16;
  static constexpr unsigned kEach = 64;

  // null: none is free; may_make() says whether the caller may have the driver make one.
  CUevent take(std::uint64_t context);
  bool may_make(std::uint64_t context);
  void made(std::uint64_t context);
  void give(std::uint64_t context, CUevent event);
  // One after another until null, then the context is forgotten.
  CUevent take_last(std::uint64_t context);

 private:
  struct Context {
    std::uint64_t context = 0;
    unsigned made = 0, free = 0;
    CUevent events[kEach] = {};
  };
  Context* of(std::uint64_t context);

  Context contexts_[kContexts];
};

}  // namespace aliquot::interposer
