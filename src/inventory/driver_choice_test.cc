#include "inventory/driver_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>

#include "common/unique_fd.h"

namespace aliquot::inventory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class DriverChoice : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aliquot-choice-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    state_ = name;
    question_ = {state_, "", "", [this] { return real_; }};
  }
  void TearDown() override { fs::remove_all(state_); }

  // A machine whose server listens, as long as the fixture lives.
  void start_machine(const std::string& name) {
    fs::create_directories(state_ / "sim" / name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (state_ / "sim" / name / "socket").c_str());  // NOLINT
    servers_.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(servers_.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(listen(servers_.back().get(), 8), 0);
  }

  fs::path state_;
  std::vector<UniqueFd> servers_;
  std::optional<Driver> real_;
  DriverQuestion question_;
};

TEST_F(DriverChoice, TheNamedMachineWinsOverEverything) {
  start_machine("lab");
  start_machine("other");
  real_ = Driver{"nvidia", {}, "/lib/libcuda.so.1", "/lib/libnvidia-ml.so.1"};
  question_.named = "lab";
  question_.named_environment = "other";
  const auto driver = choose_driver(question_);
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->name, "sim:lab");
  EXPECT_EQ(driver->libcuda, state_ / "sim/lab/lib/libcuda.so.1");
  EXPECT_EQ(driver->title(), "simulated machine lab");
}

TEST_F(DriverChoice, TheVariableWinsOverARealDriver) {
  start_machine("other");
  real_ = Driver{"nvidia", {}, "/lib/libcuda.so.1", "/lib/libnvidia-ml.so.1"};
  question_.named_environment = "other";
  EXPECT_EQ(choose_driver(question_)->name, "sim:other");
}

TEST_F(DriverChoice, ARealDriverWinsOverTheOnlyRunningMachine) {
  start_machine("lab");
  real_ = Driver{"nvidia", {}, "/lib/libcuda.so.1", "/lib/libnvidia-ml.so.1"};
  EXPECT_EQ(choose_driver(question_)->name, "nvidia");
  real_.reset();
  EXPECT_EQ(choose_driver(question_)->name, "sim:lab");
}

TEST_F(DriverChoice, TwoMachinesAndNoNameIsAnErrorThatListsThem) {
  start_machine("b");
  start_machine("a");
  EXPECT_THAT(choose_driver(question_).error().message, HasSubstr("simulated machines: a, b"));
  EXPECT_THAT(running_machines(state_), ElementsAre("a", "b"));
}

TEST_F(DriverChoice, AMachineThatEndedIsNotThere) {
  start_machine("lab");
  servers_.clear();  // its socket file stays
  EXPECT_TRUE(running_machines(state_).empty());
  question_.named = "lab";
  EXPECT_EQ(choose_driver(question_).error().code, Errc::kNotFound);
  EXPECT_EQ(driver_called("sim:lab", question_).error().code, Errc::kNotFound);
}

TEST_F(DriverChoice, NothingAtAllSaysHowToTryWithoutAGpu) {
  EXPECT_THAT(choose_driver(question_).error().message, HasSubstr("aliquot sim up --node a100x8"));
}

TEST_F(DriverChoice, ANameIsNeverAPath) {
  start_machine("lab");
  question_.named = "../sim/lab";
  EXPECT_FALSE(choose_driver(question_));
}

}  // namespace
}  // namespace aliquot::inventory
