// Random operations against an independent book: nothing over-given by a byte or a unit, nothing
// lost, and the log replays to the same state.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <random>

#include "scheduler/gang.h"
#include "scheduler/test_cluster.h"
#include "support/topologies.h"

namespace aliquot::scheduler {
namespace {

using model::Bytes;
using model::GpuKind;
using test::kGiB;

// What the test itself believes to be taken, added up from placements only.
struct Book {
  struct Gpu {
    Bytes memory = 0;
    int cores = 0;
    int parts = 0;
    bool whole = false;
    unsigned mig = 0;
  };
  struct Node {
    std::int64_t cpu = 0;
    Bytes memory = 0;
    int pods = 0;
    std::array<Gpu, 8> gpus;
  };
  std::vector<Node> nodes;

  void add(const model::Placement& p, int sign) {
    Node& n = nodes.at(static_cast<std::size_t>(p.node));
    n.cpu += sign * p.cpu_milli;
    n.memory += sign * p.memory_bytes;
    n.pods += sign;
    for (const model::GpuPart& part : p.gpus) {
      Gpu& g = n.gpus.at(static_cast<std::size_t>(part.gpu));
      g.memory += sign * part.memory_bytes;
      g.cores += sign * part.cores_milli;
      g.parts += sign;
      if (part.whole) g.whole = sign > 0;
      // Overlap in either direction would show here.
      EXPECT_EQ(g.mig & part.mig_mask, sign > 0 ? 0u : part.mig_mask);
      g.mig = sign > 0 ? g.mig | part.mig_mask : g.mig & ~unsigned{part.mig_mask};
    }
  }
};

std::vector<model::NodeSpec> cluster() {
  std::vector<model::NodeSpec> nodes;
  for (int i = 0; i < 24; ++i) {
    model::NodeSpec n = test::node("n" + std::to_string(i), i % 3 == 0 ? 8 : i % 3 == 1 ? 4 : 2);
    n.max_pods = 20;
    n.domains = {"s" + std::to_string(i / 12), "r" + std::to_string(i / 4)};
    if (n.gpu_count == 8) n.topology = "two-nics";
    if (i % 5 == 4) n.overcommit = {150, 200};
    if (i % 7 == 6) {
      n.mig_gpus = 1;
      n.mig_profiles = {{"1g", 1, {0, 1, 2, 3, 4, 5, 6}}, {"2g", 2, {0, 2, 4}}, {"4g", 4, {0}}};
    }
    nodes.push_back(n);
  }
  return nodes;
}

model::Request random_request(std::mt19937_64& random) {
  const auto ask = [&]() -> std::optional<model::GpuAsk> {
    switch (random() % 6) {
      case 0:
        return std::nullopt;
      case 1:
        return model::GpuAsk{GpuKind::kWhole, 1 << random() % 4, 0, 0, 0, {}};
      case 2:
        return model::GpuAsk{GpuKind::kMig, 1, 0, 0, 0, random() % 2 == 0 ? "1g" : "2g"};
      case 3:
        return model::GpuAsk{GpuKind::kShare,
                             2,
                             static_cast<int>(random() % 600),
                             static_cast<Bytes>(1 + random() % (20 * kGiB)),
                             0,
                             {}};
      default:
        return model::GpuAsk{GpuKind::kShare,
                             1,
                             static_cast<int>(random() % 1001),
                             static_cast<Bytes>(1 + random() % (40 * kGiB)),
                             static_cast<int>(random() % 60),
                             {}};
    }
  };
  model::Request request;
  const std::size_t containers = random() % 8 == 0 ? 2 : 1;
  for (std::size_t i = 0; i < containers; ++i)
    request.containers.push_back({"c", static_cast<std::int64_t>(random() % 8'000),
                                  static_cast<Bytes>(random() % (16 * kGiB)), ask()});
  return request;
}

struct Entry {  // of the log
  enum { kReserve, kCommit, kRelease, kCordon } kind;
  ReservationId id = 0;
  model::Placement placement;
  NodeId node = 0;
  bool cordoned = false;
};

class Operations {
 public:
  explicit Operations(std::string_view policy, std::uint64_t seed)
      : random_(seed),
        scheduler_(cluster(), std::move(*make_policy(policy, input()))),
        tree_(domain_tree_of(scheduler_.snapshot())) {
    book_.nodes.resize(scheduler_.snapshot().size());
  }

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      const auto draw = random_() % 100;
      if (draw < 50)
        place();
      else if (draw < 92)
        release();
      else if (draw < 95)
        gang();
      else if (draw < 98)
        cordon();
      else
        foreign_nonsense();
      if (i % 64 == 0) check();
    }
    check();
    replay();
    while (!held_.empty()) release();
    check_empty();
  }

 private:
  static PolicyInput input() {
    PolicyInput in;
    in.workload =
        workload_of({{4'000, 500, 1, {}, 5}, {4'000, 1'000, 2, {}, 2}, {1'000, 0, 0, {}, 2}});
    in.seed = 3;
    in.topologies["two-nics"] = aliquot::test::two_nics();
    return in;
  }

  void remember(const Decision& d) {
    book_.add(d.placement, 1);
    held_.push_back(d.reservation);
    log_.push_back({Entry::kReserve, d.reservation, d.placement, 0, false});
    if (random_() % 2 == 0) {
      ASSERT_TRUE(scheduler_.snapshot().commit(d.reservation));
      log_.push_back({Entry::kCommit, d.reservation, {}, 0, false});
    }
  }

  void place() {
    const Result<Decision> d = scheduler_.place(random_request(random_));
    if (d && d->outcome == Outcome::kPlaced) remember(*d);
  }

  void release() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    const ReservationId id = held_.back();
    held_.pop_back();
    book_.add(scheduler_.snapshot().find(id)->placement, -1);
    ASSERT_TRUE(scheduler_.snapshot().release(id));
    ASSERT_FALSE(scheduler_.snapshot().release(id));  // once only
    log_.push_back({Entry::kRelease, id, {}, 0, false});
  }

  void gang() {
    Gang gang{"g", {{random_request(random_), 1 + static_cast<int>(random_() % 6)}}, {}, {}};
    if (random_() % 2 == 0) gang.required_level = random_() % 3;
    const std::uint64_t before = scheduler_.snapshot().digest();
    const Result<GangDecision> d = place_gang(scheduler_, tree_, gang);
    if (d && d->outcome == Outcome::kPlaced) {
      for (const Decision& member : d->members) remember(member);
    } else {
      ASSERT_EQ(scheduler_.snapshot().digest(), before) << "a refused gang left a trace";
    }
  }

  void cordon() {
    const auto node = static_cast<NodeId>(random_() % scheduler_.snapshot().size());
    const bool cordoned = random_() % 4 == 0;
    scheduler_.snapshot().cordon(node, cordoned);
    log_.push_back({Entry::kCordon, 0, {}, node, cordoned});
  }

  // Placements that nobody may get: refused, and nothing changes.
  void foreign_nonsense() {
    model::Placement p;
    p.node = static_cast<int>(random_() % scheduler_.snapshot().size());
    p.gpus = {{0, 0, 1, 1, false, 0}, {0, 0, Bytes{1} << 50, 1, false, 0}};
    const std::uint64_t before = scheduler_.snapshot().digest();
    ASSERT_FALSE(scheduler_.snapshot().reserve(p));
    ASSERT_EQ(scheduler_.snapshot().digest(), before);
  }

  void check() {
    const Snapshot& s = scheduler_.snapshot();
    ASSERT_EQ(s.reservations().size(), held_.size());
    for (NodeId id = 0; id < s.size(); ++id) {
      const Book::Node& mine = book_.nodes[id];
      const NodeShape& shape = s.shape(s.shape_id(id));
      const NodeState state = s.state(id);
      ASSERT_LE(mine.cpu, shape.cpu_milli);
      ASSERT_EQ(state.cpu_milli, shape.cpu_milli - mine.cpu);
      ASSERT_EQ(s.free_memory(id), s.spec(id).memory_bytes - mine.memory);
      ASSERT_GE(s.free_memory(id), 0);
      ASSERT_EQ(s.pods(id), mine.pods);
      ASSERT_LE(mine.pods, s.spec(id).max_pods);
      for (int g = 0; g < shape.gpu_count; ++g) {
        const Book::Gpu& taken = mine.gpus.at(static_cast<std::size_t>(g));
        const GpuState& gpu = state.gpus.at(static_cast<std::size_t>(g));
        ASSERT_LE(taken.memory, shape.memory_capacity());
        ASSERT_LE(taken.cores, shape.cores_capacity());
        ASSERT_EQ(taken.whole ? 1 : taken.parts, taken.parts);
        ASSERT_EQ(gpu.idle, taken.parts == 0);
        ASSERT_EQ(gpu.mig_used, taken.mig);
        ASSERT_EQ(gpu.memory, taken.whole ? 0 : shape.memory_capacity() - taken.memory);
      }
    }
  }

  void replay() {
    Snapshot again(cluster(), scheduler_.policy().reads());
    std::map<ReservationId, ReservationId> ids;
    std::uint64_t reserved = 0;
    for (const Entry& entry : log_) {
      if (entry.kind == Entry::kReserve) {
        const auto id = again.reserve(entry.placement);
        ASSERT_TRUE(id) << id.error().message;
        ids[entry.id] = *id;
        ++reserved;
      } else if (entry.kind == Entry::kCommit) {
        ASSERT_TRUE(again.commit(ids.at(entry.id)));
      } else if (entry.kind == Entry::kRelease) {
        ASSERT_TRUE(again.release(ids.at(entry.id)));
      } else {
        again.cordon(entry.node, entry.cordoned);
      }
    }
    ASSERT_GT(reserved, 0u);
    for (NodeId node = 0; node < again.size(); ++node)
      ASSERT_EQ(again.state(node), scheduler_.snapshot().state(node));
    ASSERT_EQ(again.reservations().size(), scheduler_.snapshot().reservations().size());
  }

  void check_empty() {
    const Snapshot& s = scheduler_.snapshot();
    for (NodeId id = 0; id < s.size(); ++id)
      ASSERT_EQ(s.state(id), empty_state(s.shape(s.shape_id(id)), s.shape_id(id)));
  }

  std::mt19937_64 random_;
  Scheduler scheduler_;
  DomainTree tree_;
  Book book_;
  std::vector<ReservationId> held_;
  std::vector<Entry> log_;
};

class Property : public ::testing::TestWithParam<const char*> {};

// 10^5 in all by default; ALIQUOT_OPERATIONS=1000000 is the long run.
TEST_P(Property, NothingIsOverGivenOrLost) {
  const char* asked = std::getenv("ALIQUOT_OPERATIONS");
  const int all = asked != nullptr ? std::atoi(asked) : 100'000;
  for (const std::uint64_t seed : {1, 2}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Operations(GetParam(), seed).run(all / 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Property,
                         ::testing::Values("random", "fgd", "rollout", "topology", "clustering"));

}  // namespace
}  // namespace aliquot::scheduler
