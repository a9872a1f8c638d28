// The engine against a slow, simple model that steps through time microsecond by microsecond and
// moves every block by itself. Both get the same random programs; every completion must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/engine.h"

namespace aliquot::engine {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;

struct Kernel {
  std::size_t stream = 0;
  std::uint64_t unissued = 0;
  std::uint64_t units = 0;  // room of a block
  std::int64_t block_us = 0;
  std::uint64_t running = 0;
  std::uint64_t order = 0;
};
struct Block {
  std::size_t kernel = 0;
  std::int64_t left_us = 0;
};
struct Copy {
  std::size_t stream = 0;
  std::int64_t left_us = 0;
};
struct Wait {
  std::size_t stream = 0;
  std::size_t other = 0;
  std::uint64_t until = 0;
};

// One context a space; no MPS, no priorities: those have tests by hand.
class SlowModel {
 public:
  SlowModel(const EngineSpec& spec, std::vector<std::size_t> stream_context, std::size_t contexts)
      : spec_(spec),
        context_of_(std::move(stream_context)),
        queues_(context_of_.size()),
        begun_(context_of_.size(), false),
        completed_(context_of_.size(), 0),
        ends_(context_of_.size()),
        kernels_(contexts),
        blocks_(contexts),
        room_(contexts, spec.multiprocessors * kUnitsPerSm),
        lanes_(kCopyLanes) {}

  void submit(std::size_t stream, const Work& work) {
    queues_[stream].push_back(work);
    if (queues_[stream].size() == 1) pump(stream);
    wake();
    check_slice();
  }
  // Everything that happens at this microsecond, then one microsecond of work.
  void tick() {
    const bool switched = switching_ == 1;
    if (switching_ > 0) --switching_;
    if (switched) {
      slice_start_ = now_;
      dispatch();
    }
    finish_blocks();
    finish_copies();
    check_slice();
  }
  void pass_time() {
    if (switching_ == 0 && current_ >= 0) {
      for (Block& block : blocks_[static_cast<std::size_t>(current_)]) --block.left_us;
    }
    for (std::vector<Copy>& lane : lanes_) {
      if (!lane.empty()) --lane.front().left_us;
    }
    ++now_;
  }
  bool done() const {
    return std::ranges::all_of(queues_, [](const auto& queue) { return queue.empty(); });
  }
  std::int64_t now() const { return now_; }
  // When the items of a stream were complete, in microseconds.
  const std::vector<std::int64_t>& ends(std::size_t stream) const { return ends_[stream]; }
  std::uint64_t submitted(std::size_t stream) const {
    return completed_[stream] + queues_[stream].size();
  }

 private:
  bool ready(std::size_t context) const { return !kernels_[context].empty(); }
  bool other_ready() const {
    for (std::size_t c = 0; c < kernels_.size(); ++c) {
      if (static_cast<int>(c) != current_ && ready(c)) return true;
    }
    return false;
  }

  // Ties: the stream itself goes on first, then those that waited for it, oldest wait first.
  void complete(std::size_t stream) {
    queues_[stream].erase(queues_[stream].begin());
    begun_[stream] = false;
    ++completed_[stream];
    ends_[stream].push_back(now_);
    std::erase_if(waits_, [&](const Wait& wait) {
      if (wait.other != stream || wait.until > completed_[stream]) return false;
      woken_.push_back(wait.stream);
      return true;
    });
  }

  void pump(std::size_t stream) {
    while (!queues_[stream].empty() && !begun_[stream]) {
      const Work work = queues_[stream].front();
      begun_[stream] = true;
      if (work.kind == WorkKind::kMarker ||
          (work.kind == WorkKind::kWait && completed_[work.other.slot] >= work.other_seq)) {
        complete(stream);
      } else if (work.kind == WorkKind::kWait) {
        waits_.push_back({stream, work.other.slot, work.other_seq});
      } else {
        begin(stream, work);
      }
    }
  }

  void wake() {
    for (std::size_t i = 0; i < woken_.size(); ++i) {
      const std::size_t stream = woken_[i];
      complete(stream);
      pump(stream);
    }
    woken_.clear();
  }

  void begin(std::size_t stream, const Work& work) {
    if (work.kind == WorkKind::kCopy) {
      const CopyLaneSpec& lane = spec_.copy[static_cast<std::size_t>(work.lane)];
      lanes_[static_cast<std::size_t>(work.lane)].push_back(
          {stream, (lane.latency +
                    static_cast<Nanoseconds>(static_cast<double>(work.bytes) / lane.bytes_per_ns)) /
                       kUs});
      return;
    }
    const std::uint64_t all = spec_.multiprocessors;
    const std::uint64_t units =
        work.blocks_per_sm > 0
            ? kUnitsPerSm / work.blocks_per_sm
            : (work.sms_per_block == 0 ? all : std::min<std::uint64_t>(work.sms_per_block, all)) *
                  kUnitsPerSm;
    kernels_[context_of_[stream]].push_back(
        {stream, work.blocks, units, work.block_ns / kUs, 0, ++order_});
    if (!finishing_) {
      dispatch();
      give_way_if_idle();
    }
  }

  // The first kernel with blocks left takes what room there is; the next only what that leaves.
  void dispatch() {
    if (switching_ > 0 || current_ < 0) return;
    const auto c = static_cast<std::size_t>(current_);
    for (std::size_t k = 0; k < kernels_[c].size(); ++k) {
      Kernel& kernel = kernels_[c][k];
      while (kernel.unissued > 0 && room_[c] >= kernel.units) {
        room_[c] -= kernel.units;
        --kernel.unissued;
        ++kernel.running;
        blocks_[c].push_back({kernel.order, kernel.block_us});
      }
      if (kernel.unissued > 0) break;
    }
    // A slice begins anew when an idle device gets work and nobody else has any.
    if (!running_ && !blocks_[c].empty() && !other_ready()) slice_start_ = now_;
    running_ = !blocks_[c].empty();
  }

  void finish_blocks() {
    if (switching_ > 0 || current_ < 0) return;
    const auto c = static_cast<std::size_t>(current_);
    finishing_ = true;
    for (std::size_t b = 0; b < blocks_[c].size();) {
      if (blocks_[c][b].left_us > 0) {
        ++b;
        continue;
      }
      const auto kernel = std::ranges::find(kernels_[c], blocks_[c][b].kernel, &Kernel::order);
      blocks_[c].erase(blocks_[c].begin() + static_cast<std::ptrdiff_t>(b));
      room_[c] += kernel->units;
      if (--kernel->running > 0 || kernel->unissued > 0) continue;
      const std::size_t stream = kernel->stream;
      kernels_[c].erase(kernel);
      complete(stream);
      pump(stream);
    }
    wake();
    finishing_ = false;
    dispatch();
    give_way_if_idle();
  }

  void finish_copies() {
    for (std::vector<Copy>& lane : lanes_) {
      if (lane.empty() || lane.front().left_us > 0) continue;
      const std::size_t stream = lane.front().stream;
      lane.erase(lane.begin());
      complete(stream);
      pump(stream);
      wake();
    }
  }

  void switch_to_next(Nanoseconds cost) {
    const auto count = static_cast<int>(kernels_.size());
    const int from = current_ < 0 ? count - 1 : current_;
    for (int i = 1; i <= count; ++i) {
      const int next = (from + i) % count;
      if (!ready(static_cast<std::size_t>(next))) continue;
      const bool loaded = current_ >= 0;
      running_ = false;
      current_ = next;
      switching_ = loaded ? cost / kUs : 0;
      if (switching_ == 0) {
        slice_start_ = now_;
        dispatch();
      }
      return;
    }
  }

  void give_way_if_idle() {
    if (switching_ > 0) return;
    if (current_ < 0 || !ready(static_cast<std::size_t>(current_))) {
      switch_to_next(spec_.switch_idle);
    }
  }

  void check_slice() {
    if (switching_ > 0 || current_ < 0 || !ready(static_cast<std::size_t>(current_))) return;
    const std::int64_t used = now_ - slice_start_;
    if (used > 0 && used % (spec_.slice / kUs) == 0 && other_ready()) {
      switch_to_next(spec_.switch_busy);
    }
  }

  EngineSpec spec_;
  std::vector<std::size_t> context_of_;
  std::vector<std::vector<Work>> queues_;
  std::vector<bool> begun_;
  std::vector<std::uint64_t> completed_;
  std::vector<std::vector<std::int64_t>> ends_;
  std::vector<std::vector<Kernel>> kernels_;  // by context, in order of dispatch
  std::vector<std::vector<Block>> blocks_;
  std::vector<std::uint64_t> room_;
  std::vector<std::vector<Copy>> lanes_;
  std::vector<Wait> waits_;
  std::vector<std::size_t> woken_;
  bool finishing_ = false;
  bool running_ = false;  // the current context has blocks running
  std::int64_t now_ = 0;
  std::int64_t switching_ = 0;
  std::int64_t slice_start_ = 0;
  int current_ = -1;
  std::uint64_t order_ = 0;
};

struct Step {
  std::int64_t time_us = 0;
  std::size_t stream = 0;
  Work work;
};

Work random_work(std::mt19937_64& random, std::size_t streams) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  switch (below(8)) {
    case 0:
      return copy(static_cast<CopyLane>(below(kCopyLanes)), 10'000 * (1 + below(100)));
    case 1:
      return wait_for({static_cast<std::uint32_t>(below(streams)), 0}, 1 + below(6));
    case 2:
      return marker();
    case 3:
    case 4:
      return timed_kernel(static_cast<Nanoseconds>(1 + below(900)) * kUs,
                          static_cast<std::uint32_t>(below(9)));
    default:
      return grid_kernel(1 + below(60), static_cast<std::uint16_t>(1 + below(3)),
                         static_cast<Nanoseconds>(1 + below(80)) * kUs);
  }
}

class Reference : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Reference, AgreesOnEveryCompletion) {
  std::mt19937_64 random(GetParam());
  EngineSpec spec;
  spec.multiprocessors = 1 + static_cast<std::uint32_t>(random() % 8);
  spec.slice = 500 * kUs;
  spec.switch_busy = 30 * kUs;
  spec.switch_idle = 5 * kUs;
  for (CopyLaneSpec& lane : spec.copy) lane = {.bytes_per_ns = 10.0, .latency = 2 * kUs};
  const std::size_t contexts = 1 + random() % 3;
  const std::size_t count = 1 + random() % 5;
  std::vector<std::size_t> context_of;
  for (std::size_t i = 0; i < count; ++i) context_of.push_back(random() % contexts);

  Engine engine(spec);
  std::vector<ContextId> ids;
  for (std::size_t i = 0; i < contexts; ++i) ids.push_back(engine.add_context(0, {.process = i}));
  std::vector<StreamId> streams;
  for (const std::size_t c : context_of) streams.push_back(engine.add_stream(ids[c]));
  SlowModel slow(spec, context_of, contexts);

  std::vector<Step> steps;
  std::int64_t time = 0;
  for (int i = 0; i < 60; ++i) {
    time += static_cast<std::int64_t>(random() % 400);
    steps.push_back({time, random() % count, random_work(random, count)});
  }
  std::vector<std::vector<std::int64_t>> ends(count);
  const auto collect = [&] {
    for (const Notice& notice : engine.take_notices()) {
      ends[notice.stream.slot].push_back(notice.time / kUs);
    }
  };
  std::size_t next = 0;
  while (next < steps.size() || !slow.done()) {
    ASSERT_LT(slow.now(), 1'000'000) << "the slow model never ends";
    slow.tick();
    for (; next < steps.size() && steps[next].time_us == slow.now(); ++next) {
      Work work = steps[next].work;
      // A wait for what is never submitted would never end.
      if (work.kind == WorkKind::kWait) {
        work.other_seq = std::min(work.other_seq, slow.submitted(work.other.slot));
      }
      slow.submit(steps[next].stream, work);
      work.notify_end = true;
      engine.submit(slow.now() * kUs, streams[steps[next].stream], work);
    }
    slow.pass_time();
  }
  engine.advance(2 * kSecond);
  collect();
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(ends[i], slow.ends(i)) << "stream " << i;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Reference, ::testing::Range<std::uint64_t>(1, 301));

}  // namespace
}  // namespace aliquot::engine
