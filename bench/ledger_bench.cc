// The ledger's cost and the broker's latencies. Prints one JSON object; ns are the best of 15
// rounds, latencies are percentiles in microseconds.
//
//   ledger_bench                 everything; status 2 when the machine is too busy for it to count
//   ledger_bench --count N       N reserve+release pairs and nothing else, for callgrind: the
//                                difference between two N is the instructions of a pair
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "broker/broker_fixture.h"
#include "wire/quota_fixture.h"

namespace {

using namespace aliquot;
using wire::Kind;
using wire::Outcome;

std::int64_t now_ns() { return MonotonicClock().now(); }

// Short rounds: on a busy machine some of them run undisturbed.
constexpr int kPairs = 5'000, kRounds = 400;

void run_pairs(const wire::Quota& quota, long pairs, bool counted) {
  for (long i = 0; i < pairs; ++i) {
    if (quota.reserve(5, 512) != Outcome::kOk) std::abort();
    if (counted) quota.count(5, Kind::kVmm, 512);
    quota.release(5, 512);
    if (counted) quota.count(5, Kind::kVmm, -512);
  }
}

template <typename Body>
double best_ns(Body body) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t start = now_ns();
    body();
    best = std::min(best, static_cast<double>(now_ns() - start) / kPairs);
  }
  return best;
}

struct Latency {
  double p50, p99, most;
};

Latency percentiles(std::vector<double> us) {
  std::ranges::sort(us);
  if (us.empty()) return {-1, -1, -1};
  return {us[us.size() / 2], us[us.size() * 99 / 100], us.back()};
}

// Wake-ups late by milliseconds: the latencies would be other people's work, not the broker's.
bool is_machine_busy() {
  std::vector<double> late;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t start = now_ns();
    usleep(100);
    late.push_back(static_cast<double>(now_ns() - start) / 1e3 - 100);
  }
  return percentiles(late).p99 > 2000;
}

void print(const char* name, const Latency& l) {
  std::printf("  \"%s_p50_us\": %.1f,\n  \"%s_p99_us\": %.1f,\n  \"%s_max_us\": %.1f,\n", name,
              l.p50, name, l.p99, name, l.most);
}

class Bench final : public broker::BrokerFixture {
 public:
  void TestBody() override {}

  // A fresh process: connect, be identified, slot, two descriptors, two mappings.
  Latency attach() {
    const std::string directory = lease("attach", 1000).directory;
    broker::Shared<std::atomic<std::int64_t>> took;
    std::vector<double> us;
    for (int i = 0; i < 500; ++i) {
      broker::Child child([&] {
        const std::int64_t start = now_ns();
        broker::attach_or_exit(directory);
        *took = now_ns() - start;
        return 0;
      });
      if (child.wait() == 0) us.push_back(static_cast<double>(*took) / 1e3);
    }
    return percentiles(us);
  }

  // What the caller of attach pays for a refusal's question.
  Latency settle() {
    const std::string directory = lease("settle", 1000).directory;
    std::vector<double> us;
    for (int i = 0; i < 1000; ++i) {
      const std::int64_t start = now_ns();
      if (!wire::settle(directory.c_str(), 1000)) std::abort();
      us.push_back(static_cast<double>(now_ns() - start) / 1e3);
    }
    return percentiles(us);
  }

  // SIGKILL of a process to its bytes subtracted, `others` being watched.
  Latency killed_to_subtracted(unsigned others) {
    const std::string directory = lease("killed", 1ull << 30, 512).directory;
    const broker::LeaseFiles view = files("killed");
    const wire::Quota quota(view.ledger(), view.grant(), 0);
    std::vector<broker::Child> watched;
    for (unsigned i = 0; i < others; ++i) watched.push_back(broker::holder(directory, 1));
    std::vector<double> us;
    for (int i = 0; i < 300; ++i) {
      broker::Child victim = broker::holder(directory, 1000);
      const std::int64_t start = now_ns();
      kill(victim.pid(), SIGKILL);
      while (quota.used() != others) usleep(20);
      us.push_back(static_cast<double>(now_ns() - start) / 1e3);
    }
    return percentiles(us);
  }

  struct Crowd {
    double attached_ms = 0;  // from the start signal to the last one attached
    // The longest of 20 deaths of the broker, until the next one's first answer, and until one that
    // came at that moment has attached.
    double takeover_ms = 0, newcomer_ms = 0;
  };
  // `count` processes attach at once.
  Crowd crowd(unsigned count) {
    const std::string directory = lease("crowd", 1ull << 30, 512).directory;
    struct Gate {
      std::atomic<bool> open{false};
      std::atomic<unsigned> ready{0}, attached{0};
    };
    broker::Shared<Gate> gate;
    std::vector<broker::Child> children;
    for (unsigned i = 0; i < count; ++i)
      children.emplace_back([&] {
        gate->ready++;
        while (!gate->open) usleep(200);
        broker::attach_or_exit(directory, 10'000);
        gate->attached++;
        pause();
        return 0;
      });
    while (gate->ready != count) usleep(200);
    const std::int64_t start = now_ns();
    gate->open = true;
    while (gate->attached != count) usleep(100);
    Crowd crowd{.attached_ms = static_cast<double>(now_ns() - start) / 1e6};
    for (int i = 0; i < 20; ++i) take_over(directory, crowd);
    return crowd;
  }

 private:
  void take_over(const std::string& directory, Crowd& crowd) {
    broker::Shared<std::atomic<std::int64_t>> died, attached;
    broker::Child newcomer([&] {
      while (*died == 0) usleep(100);
      broker::attach_or_exit(directory, 10'000);
      *attached = now_ns();
      return 0;
    });
    kill_broker();
    *died = now_ns();
    start_broker();
    static_cast<void>(client().list());
    const auto since_death_ms = [&](std::int64_t at) {
      return static_cast<double>(at - *died) / 1e6;
    };
    crowd.takeover_ms = std::max(crowd.takeover_ms, since_death_ms(now_ns()));
    if (newcomer.wait() != 0) std::abort();
    crowd.newcomer_ms = std::max(crowd.newcomer_ms, since_death_ms(*attached));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const wire::QuotaFixture fixture(1ull << 30);
  if (argc == 3 && std::string(argv[1]) == "--count") {
    run_pairs(fixture.quota, std::strtol(argv[2], nullptr, 10), false);
    return 0;
  }
  const bool busy_before = is_machine_busy();
  std::printf("{\n  \"benchmark\": \"ledger\",\n");
  std::printf("  \"reserve_release_ns\": %.1f,\n",
              best_ns([&] { run_pairs(fixture.quota, kPairs, false); }));
  std::printf("  \"reserve_release_counted_ns\": %.1f,\n",
              best_ns([&] { run_pairs(fixture.quota, kPairs, true); }));
  std::printf("  \"refusal_ns\": %.1f,\n", best_ns([&] {
                for (int i = 0; i < kPairs; ++i)
                  if (fixture.quota.reserve(5, 2ull << 30) != Outcome::kRefused) std::abort();
              }));
  Bench bench;
  print("attach", bench.attach());
  print("settle", bench.settle());
  print("killed_to_subtracted_300_others", bench.killed_to_subtracted(300));
  const Bench::Crowd crowd = bench.crowd(300);
  std::printf("  \"attach_300_at_once_ms\": %.1f,\n", crowd.attached_ms);
  std::printf("  \"takeover_300_processes_ms\": %.1f,\n", crowd.takeover_ms);
  std::printf("  \"newcomer_at_takeover_ms\": %.1f\n}\n", crowd.newcomer_ms);
  if (busy_before || is_machine_busy()) {
    std::fprintf(stderr, "ledger_bench: not valid: the machine is busy (wakes are 2 ms late)\n");
    return 2;
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
