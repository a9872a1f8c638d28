// Every driver call behind every guarded row fails, at each of its places, once and for good:
// charge and allocation roll back, outputs stay untouched, the driver's own error is returned.
//
// testing/ways.h says how memory is taken and given back; which driver calls that needs is found by
// looking, so a guard that asks the driver something new is covered without a word here. A row
// with a body of its own that no way names makes the test fail; rows that only admit and ask
// are called with nothing, each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "interposer/guard_plans.h"
#include "interposer/testing/ways.h"

namespace aliquot::interposer {
namespace {

using testing::Made;
using testing::Share;
using testing::Way;
constexpr std::uint64_t kMiB = Share::kMiB;
constexpr CUresult kInjected = CUDA_ERROR_ECC_UNCORRECTABLE;

std::vector<Way> all_ways() {
  std::vector<Way> all;
  for (auto* some : {testing::linear_ways, testing::pool_ways, testing::physical_ways,
                     testing::object_ways, testing::graph_ways, testing::context_ways})
    std::ranges::move(some(), std::back_inserter(all));
  return all;
}
std::string name_of(const Way& way) {
  std::string name = way.takes.front();
  for (const char* row : way.gives) name += std::string("_") + row;
  return name;
}

using Calls = std::map<std::string, std::uint64_t>;

// A share with a context of 10 MiB in it.
class Failing {
 public:
  Failing() : share_(256 * kMiB) {
    share_.lease.grant.gpu[0].context_overhead_bytes = share_.fake.context_bytes = 10 * kMiB;
    EXPECT_NE(share_.begin(), nullptr);
    used_ = share_.used();
    EXPECT_EQ(used_, share_.fake.taken_bytes());
  }

  // How often each driver call was made by `act`.
  Calls calls_of(const std::function<void()>& act) {
    const auto before = share_.fake.calls;
    act();
    Calls made;
    for (const auto& [name, count] : share_.fake.calls) {
      const auto known = before.find(name);
      const std::uint64_t more = count - (known == before.end() ? 0 : known->second);
      if (more != 0) made[name] = more;
    }
    return made;
  }
  void fail(const std::string& name, std::uint64_t after, bool for_good) {
    share_.fake.fail[name] = kInjected;
    share_.fake.let_through[name] = after;
    share_.fake.fail_for_good = for_good;
  }
  void stop_failing() { share_.fake.fail.clear(); }
  void expect_nothing_charged(const std::string& when) const {
    EXPECT_EQ(share_.used(), used_) << when;
  }
  void expect_nothing_taken(const std::string& when) const {
    expect_nothing_charged(when);
    EXPECT_EQ(share_.fake.taken_bytes(), used_) << when;
  }
  // What the driver has taken is charged: never less.
  void expect_all_charged(const std::string& when) const {
    EXPECT_GE(share_.used(), share_.fake.taken_bytes()) << when;
  }
  // At the end of a way: all is back, or it is one that keeps the charge.
  void expect_given_back(const Way& way, const std::string& when) const {
    if (way.keeps_for_good)
      EXPECT_GT(share_.used(), used_) << when;
    else
      expect_nothing_taken(when);
  }

 private:
  Share share_;
  std::uint64_t used_ = 0;
};

enum class Phase { kTake, kGive };

Calls calls_of(const Way& way, Phase phase) {
  Failing world;
  Made made;
  const Calls taking =
      world.calls_of([&] { EXPECT_EQ(way.take(made), CUDA_SUCCESS) << name_of(way); });
  world.expect_all_charged(name_of(way));
  const Calls giving =
      world.calls_of([&] { EXPECT_EQ(way.give(made), CUDA_SUCCESS) << name_of(way); });
  world.expect_given_back(way, name_of(way));
  return phase == Phase::kTake ? taking : giving;
}

// Every driver call of a phase, at each of its places, once and for good.
struct Failure {
  std::string call;
  std::uint64_t after;
  bool last, for_good;
  std::string text() const {
    return call + " fails after " + std::to_string(after) + (for_good ? ", for good" : ", once");
  }
};
std::vector<Failure> failures_of(const Way& way, Phase phase) {
  std::vector<Failure> all;
  for (const auto& [call, count] : calls_of(way, phase))
    for (std::uint64_t i = 0; i < count; ++i)
      for (const bool for_good : {false, true}) all.push_back({call, i, i + 1 == count, for_good});
  return all;
}

class EveryDriverCall : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Guards, EveryDriverCall, ::testing::ValuesIn(all_ways()),
                         [](const auto& way) { return name_of(way.param); });

TEST_P(EveryDriverCall, ThatAWayNamesIsMadeByIt) {
  const Calls taking = calls_of(GetParam(), Phase::kTake);
  const Calls giving = calls_of(GetParam(), Phase::kGive);
  for (const char* row : GetParam().takes) EXPECT_TRUE(taking.contains(row)) << row;
  for (const char* row : GetParam().gives) EXPECT_TRUE(giving.contains(row)) << row;
}

TEST_P(EveryDriverCall, ThatFailsWhileMemoryIsTakenLeavesNothingBehind) {
  const Way& way = GetParam();
  for (const Failure& failure : failures_of(way, Phase::kTake)) {
    const std::string when = name_of(way) + ", " + failure.text();
    Failing world;
    Made made;
    world.fail(failure.call, failure.after, failure.for_good);
    const CUresult result = way.take(made);
    world.stop_failing();
    if (failure.call == way.takes.front() && failure.last) {
      EXPECT_EQ(result, kInjected) << when;
    }
    if (result != CUDA_SUCCESS) {
      // Where the driver does not say what a pool has grown by, that is no room.
      const bool unsaid = failure.call == "cuMemPoolGetAttribute";
      EXPECT_EQ(result, unsaid ? CUDA_ERROR_OUT_OF_MEMORY : kInjected) << when;
      EXPECT_EQ(made, Made{}) << when;
      world.expect_nothing_taken(when);
      ASSERT_EQ(way.take(made), CUDA_SUCCESS) << when;
    }
    world.expect_all_charged(when);
    EXPECT_EQ(way.give(made), CUDA_SUCCESS) << when;
    world.expect_given_back(way, when + ", and is given back");
  }
}

TEST_P(EveryDriverCall, ThatFailsWhileMemoryIsGivenBackKeepsItCharged) {
  const Way& way = GetParam();
  for (const Failure& failure : failures_of(way, Phase::kGive)) {
    const std::string when = name_of(way) + " given back, " + failure.text();
    Failing world;
    Made made;
    ASSERT_EQ(way.take(made), CUDA_SUCCESS) << when;
    world.fail(failure.call, failure.after, failure.for_good);
    const CUresult result = way.give(made);
    world.stop_failing();
    world.expect_all_charged(when);
    if (result == CUDA_SUCCESS) continue;
    EXPECT_EQ(result, kInjected) << when;
    // Again; where a part of it is gone already, the rest.
    if (way.give(made) == CUDA_SUCCESS) world.expect_given_back(way, when + ", and again");
    world.expect_all_charged(when + ", and again");
  }
}

// Calls a function with null, 0 and empty for whatever it takes.
template <class... Parameters>
CUresult call_with_nothing(CUresult (*function)(Parameters...)) {
  return function(Parameters{}...);
}

struct Row {
  std::string symbol;
  Plan plan;
  CUresult (*call)();
};
#define ALIQUOT_ROW_kPass(symbol, base)
#define ALIQUOT_ROW_kDeny(symbol, base)
#define ALIQUOT_ROW_kGuard(symbol, base) \
  Row{#symbol, plan_of(#base), [] { return call_with_nothing(&::symbol); }},
const std::vector<Row> kGuards = {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_ROW_##kind(symbol, base)
#include "driver_abi/cuda_entry_points.def"
};

// Bodies of their own that take and keep nothing: asked below, with outputs to leave untouched.
const std::set<std::string> kOnlySay = {
    "cuInit",          "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemGetInfo",
    "cuMemGetInfo_v2", "cuDeviceTotalMem", "cuDeviceTotalMem_v2"};
// Bodies whose driver call fails elsewhere.
const std::map<std::string, const char*> kElsewhere = {
    {"cuLaunchCooperativeKernelMultiDevice", "a launch on several GPUs: gate_rows_test"},
};

TEST(Failures, EveryRowWithABodyOfItsOwnIsNamedByAWay) {
  std::set<std::string> named;
  for (const Way& way : all_ways()) {
    named.insert(way.takes.begin(), way.takes.end());
    named.insert(way.gives.begin(), way.gives.end());
  }
  unsigned rows = 0;
  for (const Row& row : kGuards) {
    if (row.plan != Plan::kOwn && row.plan != Plan::kFirst) continue;
    ++rows;
    EXPECT_TRUE(named.contains(row.symbol) || kOnlySay.contains(row.symbol) ||
                kElsewhere.contains(row.symbol))
        << row.symbol << " has a body and nothing that lets its driver calls fail: testing/ways.h";
  }
  EXPECT_GT(rows, 70u);
}

TEST(Failures, OfRowsThatAdmitAndAskComeBackAsTheyAre) {
  unsigned rows = 0;
  for (const Row& row : kGuards) {
    if (row.plan == Plan::kOwn || row.plan == Plan::kFirst) continue;
    Failing world;
    if (!has(driver_abi::cuda_row(row.symbol).value())) continue;  // newer than the fake driver
    ++rows;
    world.fail(row.symbol, 0, /*for_good=*/true);
    const Calls made = world.calls_of([&] { EXPECT_EQ(row.call(), kInjected) << row.symbol; });
    EXPECT_EQ(made, (Calls{{row.symbol, 1}}));
    world.stop_failing();
    world.expect_nothing_taken(row.symbol);
  }
  EXPECT_GT(rows, 200u);
}

// One that only says something: its arguments stay as they were.
template <class Output, class Call>
void expect_untouched(const char* name, Output before, Call call) {
  Failing world;
  Output output = before;
  for (const auto& [asked, count] : world.calls_of([&] {
         Output good = before;
         EXPECT_EQ(call(&good), CUDA_SUCCESS) << name;
       })) {
    for (std::uint64_t i = 0; i < count; ++i) {
      world.fail(asked, i, /*for_good=*/true);
      const CUresult result = call(&output);
      world.stop_failing();
      if (asked == name) {
        EXPECT_EQ(result, kInjected) << name;
      }
      if (result != CUDA_SUCCESS) {
        EXPECT_EQ(output, before) << name << ", " << asked << " fails";
      }
      output = before;
      world.expect_nothing_taken(name);
    }
  }
}

TEST(Failures, OfRowsThatOnlySayLeaveTheOutputsUntouched) {
  using Sizes = std::pair<std::size_t, std::size_t>;
  using OldSizes = std::pair<unsigned, unsigned>;
  expect_untouched("cuMemGetInfo_v2", Sizes{5, 6},
                   [](Sizes* out) { return cuMemGetInfo_v2(&out->first, &out->second); });
  expect_untouched("cuMemGetInfo", OldSizes{5, 6},
                   [](OldSizes* out) { return cuMemGetInfo(&out->first, &out->second); });
  expect_untouched("cuDeviceTotalMem_v2", std::size_t{5},
                   [](std::size_t* out) { return cuDeviceTotalMem_v2(out, 0); });
  expect_untouched("cuDeviceTotalMem", 5u, [](unsigned* out) { return cuDeviceTotalMem(out, 0); });
  const auto address = [](auto call) {
    return [call](void** out) { return call("cuMemAlloc", out, 12000, 0); };
  };
  expect_untouched("cuGetProcAddress", static_cast<void*>(nullptr), address(&cuGetProcAddress));
  expect_untouched("cuGetProcAddress_v2", static_cast<void*>(nullptr), [](void** out) {
    return cuGetProcAddress_v2("cuMemAlloc", out, 12000, 0, nullptr);
  });
}

TEST(Failures, OfInitialisationComeBackAsTheyAre) {
  Share share(256 * kMiB);
  share.fake.fail["cuInit"] = kInjected;
  EXPECT_EQ(cuInit(0), kInjected);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
}

}  // namespace
}  // namespace aliquot::interposer
