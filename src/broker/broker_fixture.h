// For tests: a machine of our own, a broker in a child process that may be killed, tenants that are
// children of the test. One thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "broker/broker.h"
#include "broker/client.h"
#include "broker/fake_machine.h"
#include "broker/lease_files.h"
#include "wire/control.h"
#include "wire/quota.h"

namespace aliquot::broker {

// A child process; killed when it goes out of scope.
class Child {
 public:
  Child() = default;
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child() { kill_now(); }

  pid_t pid() const { return pid_; }
  // The exit status, or minus the signal.
  int wait() {
    int status = 0;
    if (pid_ <= 0) return -1;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }

 private:
  pid_t pid_ = -1;
};

inline bool eventually(const std::function<bool()>& test, int ms = 5000) {
  for (int i = 0; i < ms * 2; ++i) {
    if (test()) return true;
    usleep(500);
  }
  return false;
}

class BrokerFixture : public testing::Test {
 public:
  ~BrokerFixture() override {
    broker_.kill_now();
    std::error_code ignored;
    std::filesystem::remove_all(state_, ignored);
  }
  BrokerFixture(const BrokerFixture&) = delete;
  BrokerFixture& operator=(const BrokerFixture&) = delete;

 protected:
  explicit BrokerFixture(IdentityPath identity = IdentityPath::kAuto) : identity_(identity) {
    // tmpfs where there is one, as state directories are meant to be.
    std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm/aliquot-test-XXXXXX"
                                                     : testing::TempDir() + "/aliquot-test-XXXXXX";
    state_ = mkdtemp(name.data());
    start_broker();
  }
  void start_broker() {
    broker_ = Child([this] {
      FakeProbes probes(*machine_);
      MonotonicClock clock;
      BrokerOptions options;
      options.state_directory = state_;
      options.identity = identity_;
      options.socket.silence = 300 * kMillisecond;
      options.log = log_;
      auto broker = Broker::open(options, probes, clock);
      if (!broker) {
        fprintf(stderr, "%s\n", broker.error().message.c_str());
        return 1;
      }
      (*broker)->run();
      return 0;
    });
    // Long: machines that run tests are busy.
    ASSERT_TRUE(eventually([this] { return Client::connect(state_).has_value(); }, 20'000));
  }
  void kill_broker() { broker_.kill_now(); }

  Client client() { return std::move(*Client::connect(state_)); }

  // A lease of `bytes` on GPU 0 that this test process is the runner of.
  LeaseGrant lease(const std::string& name, std::uint64_t bytes, std::uint32_t slots = 64) {
    LeaseRequest request;
    request.driver = "fake";
    request.name = name;
    request.slots = slots;
    request.shares = {{"0", {model::MemoryQuantity::Kind::kBytes, bytes}, 0}};
    auto granted = client().create_lease(request);
    EXPECT_TRUE(granted) << granted.error().message;
    return granted ? *granted : LeaseGrant{};
  }

  // The broker's own view of a lease's files.
  LeaseFiles files(const std::string& name) {
    auto opened = LeaseFiles::open(state_ / "leases" / name);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  std::filesystem::path state_;
  IdentityPath identity_;
  Shared<FakeMachine> machine_;
  log::Log log_;
  Child broker_;
};

// Names the two instances of a test on both identity paths.
inline std::string identity_name(const testing::TestParamInfo<IdentityPath>& path) {
  return path.param == IdentityPath::kPidfs ? "Pidfs" : "Credentials";
}

// In a child: attaches or ends the process.
inline wire::Attachment attach_or_exit(const std::string& directory, unsigned patience_ms = 3000) {
  wire::Attachment attachment;
  char reason[256] = "";
  if (wire::attach(directory.c_str(), patience_ms, attachment, reason, sizeof reason) !=
      wire::AttachResult::kAttached) {
    fprintf(stderr, "attach: %s\n", reason);
    _exit(99);
  }
  return attachment;
}

inline wire::Quota quota_of(const wire::Attachment& attachment, unsigned gpu = 0) {
  return {attachment.ledger, *attachment.grant, gpu};
}

// A child that attaches, reserves, says so and waits to be killed.
inline Child holder(const std::string& directory, std::uint64_t bytes) {
  int done[2];
  if (pipe2(done, O_CLOEXEC) != 0) return {};
  Child child([&] {
    const wire::Attachment attachment = attach_or_exit(directory);
    const bool ok = quota_of(attachment).reserve(static_cast<unsigned>(attachment.slot), bytes) ==
                    wire::Outcome::kOk;
    if (write(done[1], ok ? "y" : "n", 1) == 1) pause();
    return 1;
  });
  close(done[1]);
  char answer = 0;
  EXPECT_EQ(read(done[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  close(done[0]);
  return child;
}

}  // namespace aliquot::broker
