// Starting a broker on demand: one per state directory, whoever races.
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include "common/files.h"

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

namespace fs = std::filesystem;

// What start_or_connect executes in these tests: this program as a broker.
TEST(Helper, IsABroker) {
  const char* mark = std::getenv("ALIQUOT_TEST_BROKER");
  if (mark == nullptr) GTEST_SKIP() << "runs only as the broker of another test";
  Shared<FakeMachine> machine;
  FakeProbes probes(*machine);
  MonotonicClock clock;
  BrokerOptions options;
  options.state_directory = std::getenv("ALIQUOT_STATE_DIR");
  options.idle_exit = 500 * kMillisecond;
  auto broker = Broker::open(options, probes, clock);
  if (!broker) {
    fprintf(stderr, "%s\n", broker.error().message.c_str());
    _exit(1);
  }
  (*broker)->run();
  _exit(0);
}

struct Start : testing::Test {
  Start() {
    std::string name = testing::TempDir() + "/aliquot-start-XXXXXX";
    state_ = mkdtemp(name.data());
    setenv("ALIQUOT_TEST_BROKER", "1", 1);
    command_ = {fs::read_symlink("/proc/self/exe"), "--gtest_filter=Helper.IsABroker"};
  }
  ~Start() override {
    if (auto client = Client::connect(state_); client) static_cast<void>(client->shutdown());
    fs::remove_all(state_);
  }
  fs::path state_;
  std::vector<std::string> command_;
};

TEST_F(Start, RacersGetTheSameBroker) {
  Shared<std::atomic<std::uint64_t>> inodes;
  std::vector<Child> racers;
  for (int i = 0; i < 8; ++i)
    racers.push_back(Child([&] {
      auto client = Client::start_or_connect(state_, command_);
      return client && client->list() ? 0 : 1;
    }));
  for (Child& racer : racers) EXPECT_EQ(racer.wait(), 0);
  const auto log = read_file(state_ / "broker.log");
  EXPECT_EQ(log->find("another broker"), std::string::npos) << *log;
}

TEST_F(Start, ABrokerWithNothingToDoEnds) {
  // Watched by its pidfd: looking by connecting would keep it busy.
  UniqueFd broker;
  {
    const auto client = Client::start_or_connect(state_, command_);
    ASSERT_TRUE(client);
    broker.reset(dup(client->broker_pidfd()));
  }
  pollfd ended{broker.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 10'000), 1);
  EXPECT_TRUE(Client::start_or_connect(state_, command_));
}

TEST_F(Start, AProgramThatCannotBeABrokerIsNamed) {
  const auto client = Client::start_or_connect(state_, {"/nonexistent/aliquot", "broker"});
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, testing::HasSubstr("/nonexistent/aliquot"));
  const auto failing = Client::start_or_connect(state_, {"/bin/sh", "-c", "echo no GPU here >&2"});
  EXPECT_THAT(failing.error().message, testing::HasSubstr("no GPU here"));
}

}  // namespace
}  // namespace aliquot::broker
