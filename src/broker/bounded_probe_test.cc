// A driver that hangs, seen from the broker's loop.
#include "broker/bounded_probe.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace aliquot::broker {
namespace {

constexpr ProbePatience kShort{.open = 50 * kMillisecond, .answer = 50 * kMillisecond};
constexpr ProbePatience kLong{.open = 60 * kSecond, .answer = 60 * kSecond};

// Hangs from hang() to go_on().
class Door {
 public:
  void hang() { set(false); }
  void go_on() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  void set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};

struct Driver final : ProbeSource {
  struct Probe final : GpuProbe {
    explicit Probe(std::shared_ptr<Door> of) : door(std::move(of)) {}
    Result<std::vector<ProbedGpu>> gpus() override {
      door->pass();
      return std::vector<ProbedGpu>(2);
    }
    Result<std::vector<ProbedUse>> use(std::uint32_t gpu, std::uint64_t after_us) override {
      door->pass();
      return std::vector<ProbedUse>{{.pid = static_cast<std::int32_t>(gpu), .at_us = after_us}};
    }
    bool is_machine_wide() const override { return true; }
    std::shared_ptr<Door> door;  // a call that hangs outlives the test's own
  };
  Result<std::unique_ptr<GpuProbe>> open(const std::string& name) override {
    door->pass();
    if (name == "none") return Error{Errc::kNotFound, "no such driver"};
    return std::unique_ptr<GpuProbe>(std::make_unique<Probe>(door));
  }
  std::shared_ptr<Door> door = std::make_shared<Door>();
};

struct Bounded : ::testing::Test {
  std::shared_ptr<Driver> driver = std::make_shared<Driver>();
  ~Bounded() override { driver->door->go_on(); }
};

TEST_F(Bounded, AnswersPassAsTheyAre) {
  BoundedProbes probes(driver, kLong);
  const auto probe = probes.open("nvidia");
  ASSERT_TRUE(probe);
  EXPECT_EQ((*probe)->gpus()->size(), 2u);
  const auto use = (*probe)->use(7, 99);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->front().pid, 7);
  EXPECT_EQ(use->front().at_us, 99u);
  EXPECT_TRUE((*probe)->is_machine_wide());
  const auto none = probes.open("none");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no such driver");
}

TEST_F(Bounded, ADriverThatHangsCostsItsPatienceOnce) {
  BoundedProbes probes(driver, kShort);
  const auto probe = probes.open("nvidia");
  ASSERT_TRUE(probe);
  driver->door->hang();
  const auto late = (*probe)->use(0, 0);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("no answer within 50 ms"), std::string::npos);
  const MonotonicClock clock;
  const Nanoseconds began = clock.now();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE((*probe)->gpus());
  EXPECT_LT(clock.now() - began, 1000 * kShort.answer / 2);  // not one after the other
  EXPECT_FALSE(probes.open("nvidia"));                       // nor on another thread
}

TEST_F(Bounded, AnotherDriverIsServedMeanwhile) {
  const auto healthy = std::make_shared<Driver>();
  BoundedProbes hanging(driver, kShort);
  driver->door->hang();
  EXPECT_FALSE(hanging.open("sim:a"));
  BoundedProbes probes(healthy, kLong);
  EXPECT_TRUE(probes.open("sim:b"));
}

TEST_F(Bounded, ADriverThatAnswersAgainIsAskedAgain) {
  BoundedProbes probes(driver, kShort);
  auto probe = probes.open("nvidia");
  ASSERT_TRUE(probe);
  driver->door->hang();
  EXPECT_FALSE((*probe)->gpus());
  probe->reset();  // the book drops a probe that failed
  EXPECT_FALSE(probes.open("nvidia"));
  driver->door->go_on();
  const MonotonicClock clock;
  const Nanoseconds patience = clock.now() + 30 * kSecond;
  auto again = probes.open("nvidia");
  while (!again && clock.now() < patience) again = probes.open("nvidia");
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)->gpus());
}

}  // namespace
}  // namespace aliquot::broker
