#include "broker/stress.h"

#include <algorithm>
#include <random>
#include <thread>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

constexpr std::uint64_t kLimit = kTestGiB + 12345, kBiggest = kLimit / 10;
constexpr unsigned kMostWorkers = 64;

using Counter = std::atomic<std::uint64_t>;

// What workers tell; `truth` is the driver's own number of a process.
struct Told {
  Counter operations, refused, rolled_back, helped, most_retries;
  std::atomic<bool> drain;
  struct alignas(64) Worker {
    Counter truth;
    std::atomic<int> slot;
  } worker[kMostWorkers];
};

void raise_to(Counter& counter, std::uint64_t value) {
  std::uint64_t seen = counter;
  while (seen < value && !counter.compare_exchange_weak(seen, value)) {
  }
}

// One thread of a worker: reserves, "calls the driver", sometimes fails, frees.
class WorkerThread {
 public:
  WorkerThread(const wire::Attachment& attachment, Told& told, unsigned worker, std::uint64_t seed)
      : quota_(quota_of(attachment)),
        slot_(static_cast<unsigned>(attachment.slot)),
        told_(told),
        own_(told.worker[worker]),
        random_(seed) {}

  [[noreturn]] void run() {
    for (;;) {
      while (told_.drain) {
        while (!held_.empty()) free_one(0);
        usleep(500);
      }
      if (held_.size() > 8 || (!held_.empty() && random_() % 2 == 0))
        free_one(random_() % held_.size());
      else
        allocate();
    }
  }

 private:
  void allocate() {
    const std::uint64_t bytes = 1 + random_() % (random_() % 4 != 0 ? 4096 : kBiggest);
    wire::Tally tally;
    const auto outcome = quota_.reserve(slot_, bytes, &tally);
    note(tally);
    if (outcome != wire::Outcome::kOk) {
      told_.refused++;
      if (random_() % 8 == 0) usleep(200);
      return;
    }
    if (random_() % 8 == 0) usleep(static_cast<useconds_t>(random_() % 1000));  // the driver
    if (random_() % 10 == 0) {
      told_.rolled_back++;
      release(bytes);
      return;
    }
    own_.truth += bytes;
    quota_.count(slot_, wire::Kind::kVmm, static_cast<std::int64_t>(bytes));
    held_.push_back(bytes);
  }
  void free_one(std::size_t index) {
    const std::uint64_t bytes = held_[index];
    held_[index] = held_.back();
    held_.pop_back();
    own_.truth -= bytes;
    release(bytes);
    quota_.count(slot_, wire::Kind::kVmm, -static_cast<std::int64_t>(bytes));
  }
  void release(std::uint64_t bytes) {
    wire::Tally tally;
    quota_.release(slot_, bytes, &tally);
    note(tally);
  }
  void note(const wire::Tally& tally) {
    told_.operations++;
    told_.helped += tally.helped;
    raise_to(told_.most_retries, tally.retries);
  }

  wire::Quota quota_;
  unsigned slot_;
  Told& told_;
  Told::Worker& own_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> held_;
};

class Stress final : public BrokerFixture {
 public:
  explicit Stress(const StressPlan& plan)
      : plan_(plan),
        random_(plan.seed),
        directory_(lease("stress", kLimit).directory),
        files_(files("stress")) {
    report_.limit = kLimit;
  }
  void TestBody() override {}

  StressReport run() {
    MonotonicClock clock;
    const Nanoseconds start = clock.now();
    for (unsigned w = 0; w < plan_.workers; ++w) workers_.push_back(spawn(w));
    std::uint64_t frozen_at = 0, drained_at = 0;
    while (report_.kills < plan_.kills || report_.broker_kills < plan_.broker_kills) {
      for (unsigned i = random_() % 20; i != 0; --i) watch();
      usleep(static_cast<useconds_t>(random_() % 1500));
      const unsigned victims = random_() % 4 == 0 ? 6 : 1;  // sometimes several at once
      for (unsigned i = 0; i < victims; ++i) kill_worker(random_() % plan_.workers);
      if (report_.broker_kills * plan_.kills < report_.kills * plan_.broker_kills) replace_broker();
      if (report_.kills - frozen_at > 100) frozen_at = report_.kills, freeze_and_compare();
      if (report_.kills - drained_at > 700) drained_at = report_.kills, drain();
    }
    workers_.clear();
    if (!eventually([&] { return quota().used() == 0; })) fail("bytes left when all are dead");
    report_.operations = told_->operations, report_.refused = told_->refused;
    report_.rolled_back = told_->rolled_back, report_.helped = told_->helped;
    report_.most_retries = told_->most_retries;
    report_.seconds = static_cast<double>(clock.now() - start) / kSecond;
    return report_;
  }

 private:
  wire::Quota quota() const { return {files_.ledger(), files_.grant(), 0}; }
  void fail(const std::string& what) {
    if (report_.violations.size() < 20)
      report_.violations.push_back(what + " (kill " + std::to_string(report_.kills) + ")");
  }
  void watch() {
    const std::uint64_t used = quota().used();
    report_.highest_used = std::max(report_.highest_used, used);
    if (used > kLimit) fail("used " + std::to_string(used) + " is above the limit");
  }

  Child spawn(unsigned worker) {
    told_->worker[worker].slot = -1;
    const std::uint64_t seed = random_();
    return Child([this, worker, seed] {
      const wire::Attachment attachment = attach_or_exit(directory_, 20'000);
      told_->worker[worker].slot = attachment.slot;
      std::vector<std::thread> threads;
      for (unsigned t = 0; t < plan_.threads; ++t)
        threads.emplace_back([&, t] { WorkerThread(attachment, *told_, worker, seed + t).run(); });
      for (std::thread& thread : threads) thread.join();
      return 0;
    });
  }
  void kill_worker(unsigned worker) {
    kill(workers_[worker].pid(), SIGKILL);
    if (const int status = workers_[worker].wait(); status != -SIGKILL)
      fail("a worker ended by itself: " + std::to_string(status));
    told_->worker[worker].truth = 0;
    report_.kills++;
    workers_[worker] = spawn(worker);
  }
  void replace_broker() {
    kill_broker();
    report_.broker_kills++;
    if (random_() % 4 == 0) usleep(static_cast<useconds_t>(random_() % 20000));
    const Nanoseconds start = MonotonicClock().now();
    start_broker();
    report_.longest_start_ms =
        std::max(report_.longest_start_ms,
                 static_cast<double>(MonotonicClock().now() - start) / kMillisecond);
  }

  // Every living worker is attached and no dead one is.
  void wait_until_reaped() {
    const auto settled = [&] {
      unsigned in_use = 0, attached = 0;
      for (const TableEntry& entry : files_.table().slot) {
        if (!entry.in_use()) continue;
        ++in_use;
        attached += std::ranges::any_of(
                        workers_, [&](const Child& child) { return child.pid() == entry.pid; })
                        ? 1
                        : 0;
      }
      return in_use == attached;
    };
    if (!eventually(settled)) fail("dead processes keep their slots");
  }

  void freeze_and_compare() {
    report_.freezes++;
    for (const Child& worker : workers_) kill(worker.pid(), SIGSTOP);
    for (const Child& worker : workers_) waitpid(worker.pid(), nullptr, WUNTRACED);
    wait_until_reaped();
    std::uint64_t sum = 0, truth = 0;
    for (unsigned slot = 0; slot < files_.grant().slot_count; ++slot)
      sum += quota().held_bytes(slot);
    for (unsigned w = 0; w < plan_.workers; ++w) {
      const Told::Worker& told = told_->worker[w];
      truth += told.truth;
      if (told.slot < 0) continue;
      const std::uint64_t held = quota().held_bytes(static_cast<unsigned>(told.slot));
      // What is in flight is charged before the driver has it, and after it has gone.
      if (told.truth > held) fail("the driver counts more than the ledger");
      if (held - told.truth > plan_.threads * kBiggest) fail("the ledger is too far ahead");
    }
    const std::uint64_t used = quota().used();
    if (sum != used) fail("the slots are not the total");
    if (truth > used || used > kLimit) fail("not truth <= used <= limit");
    for (const Child& worker : workers_) kill(worker.pid(), SIGCONT);
  }

  // Everybody frees everything: exactly zero, with everybody alive. Then a lower limit under load.
  void drain() {
    report_.drains++;
    told_->drain = true;
    if (!eventually([&] { return quota().used() == 0; })) fail("not zero after balanced frees");
    told_->drain = false;
    usleep(30'000);
    const std::uint64_t lower = kLimit / 3;
    if (!client().set_memory("stress", "", {model::MemoryQuantity::Kind::kBytes, lower}))
      fail("the limit could not be set");
    report_.lowered++;
    std::uint64_t bound = std::max(quota().used(), lower);
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t used = quota().used();
      if (used > bound) fail("use grew above a lowered limit");
      bound = std::max(std::min(bound, used), lower);
    }
    if (!client().set_memory("stress", "", {model::MemoryQuantity::Kind::kBytes, kLimit}))
      fail("the limit could not be set back");
  }

  StressPlan plan_;
  std::mt19937_64 random_;
  StressReport report_;
  std::string directory_;
  LeaseFiles files_;
  Shared<Told> told_;
  std::vector<Child> workers_;
};

}  // namespace

StressReport stress(const StressPlan& plan) { return Stress(plan).run(); }

std::string text_of(const StressReport& r) {
  return std::to_string(r.kills) + " kills, " + std::to_string(r.broker_kills) +
         " broker kills in " + std::to_string(static_cast<int>(r.seconds)) + " s (longest start " +
         std::to_string(static_cast<int>(r.longest_start_ms)) + " ms); " +
         std::to_string(r.operations) + " operations, " + std::to_string(r.refused) + " refused, " +
         std::to_string(r.rolled_back) + " rolled back, " + std::to_string(r.helped) +
         " completed by others, most retries " + std::to_string(r.most_retries) + "; " +
         std::to_string(r.freezes) + " freezes, " + std::to_string(r.drains) +
         " drains, highest used " + std::to_string(r.highest_used) + " of " +
         std::to_string(r.limit);
}

}  // namespace aliquot::broker
