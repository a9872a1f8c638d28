// Compute shares through a whole broker: what administrators change, what a killed broker leaves,
// and what becomes of work that passes the gate by. Tenants are children that write the gate's
// words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

#include "broker/broker_fixture.h"
#include "gate/shared_words.h"

namespace aliquot::broker {
namespace {

using testing::HasSubstr;

class ComputeTest : public BrokerFixture {
 protected:
  Result<LeaseGrant> share(const std::string& name, std::uint32_t cores) {
    LeaseRequest request;
    request.driver = "fake";
    request.name = name;
    request.slots = 16;
    request.shares = {{"0", {model::MemoryQuantity::Kind::kBytes, kTestGiB}, cores}};
    return client().create_lease(request);
  }
  ComputeRow compute_of(const std::string& name) {
    return client().get_lease(name)->gpus.at(0).compute;
  }
  Status set_gpu(GpuChange change) {
    change.driver = "fake";
    change.gpu = "0";
    return client().set_gpu(change);
  }
  void use(pid_t pid, unsigned percent) {
    machine_->gpu[0].user_percent = percent;
    machine_->gpu[0].user = pid;
  }
};

// In a child: stands at the gate until it opens.
void wait_for_window(const wire::Attachment& attachment) {
  const auto slot = static_cast<unsigned>(attachment.slot);
  wire::Cell& cell = attachment.ledger.cell(slot, 0);
  gate::publish(gate::TenantReport{.waiting = 1}, cell.demand, cell.gate);
  auto& demand = attachment.ledger.gpu(0).demand;
  demand.fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&demand), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  while ((attachment.grant->gpu[0].window & 1) == 0) usleep(100);
}

// A child that attaches, and stands at the gate when told; writes a byte after each.
class Tenant {
 public:
  explicit Tenant(const std::string& directory) {
    EXPECT_EQ(pipe2(to_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_, O_CLOEXEC), 0);
    child_ = Child([&] {
      const wire::Attachment attachment = attach_or_exit(directory);
      char word = 'a';
      while (write(from_[1], &word, 1) == 1 && read(to_[0], &word, 1) == 1)
        wait_for_window(attachment);
      return 0;
    });
    EXPECT_TRUE(answers());
  }
  ~Tenant() {
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) close(fd);
  }
  void ask() { EXPECT_EQ(write(to_[1], "w", 1), 1); }
  bool answers(int ms = 5000) {
    pollfd p{from_[0], POLLIN, 0};
    char word = 0;
    return poll(&p, 1, ms) == 1 && read(from_[0], &word, 1) == 1;
  }
  pid_t pid() const { return child_.pid(); }
  int wait() { return child_.wait(); }

 private:
  int to_[2], from_[2];
  Child child_;
};

TEST_F(ComputeTest, AChangeIsInTheGrantWhenTheCallReturns) {
  ASSERT_TRUE(share("a", 3000));
  ComputeChange change;
  change.lease = "a";
  change.cores = 6000;
  change.share_class = wire::ShareClass::kOnline;
  change.capped = true;
  ASSERT_TRUE(client().set_compute(change));
  const LeaseFiles lease = files("a");
  const wire::GrantGpu& grant = lease.grant().gpu[0];
  EXPECT_EQ(grant.cores, 6000u);
  EXPECT_EQ(grant.share_class, static_cast<std::uint32_t>(wire::ShareClass::kOnline));
  EXPECT_EQ(grant.capped, 1u);
  EXPECT_EQ(grant.weight, 1u);                // not given: as it was
  EXPECT_EQ(compute_of("a").share, 10'000u);  // online tenants compete freely
}

TEST_F(ComputeTest, GuaranteesBeyondTheWholeAreRefusedNamingWhatIsFree) {
  ASSERT_TRUE(share("a", 7000));
  const auto more = share("b", 4000);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("30%"));
  ASSERT_TRUE(share("b", 3000));
  ComputeChange change;
  change.lease = "b";
  change.cores = 3100;
  const Status refused = client().set_compute(change);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("70% are promised to others, 30% are free"));
  GpuChange allow;
  allow.most_cores = 20'000;
  ASSERT_TRUE(set_gpu(allow));
  EXPECT_TRUE(client().set_compute(change));
  EXPECT_TRUE(share("c", 9000));
}

TEST_F(ComputeTest, MemoryAndCoresAreChangedTogetherOrNotAtAll) {
  ASSERT_TRUE(share("a", 7000));
  ASSERT_TRUE(share("b", 2000));
  const LeaseFiles lease = files("b");
  const wire::GrantGpu& grant = lease.grant().gpu[0];
  const std::uint64_t limit = grant.memory_limit_bytes;
  ShareChange change;
  change.compute.lease = "b";
  change.memory = {model::MemoryQuantity::Kind::kBytes, limit + kTestGiB};
  change.compute.cores = 3100;
  EXPECT_THAT(client().set_share(change).error().message, HasSubstr("set the cores on gpu 0"));
  EXPECT_EQ(grant.memory_limit_bytes, limit);
  change.memory = {model::MemoryQuantity::Kind::kBytes, 500 * kTestGiB};
  change.compute.cores = 3000;
  EXPECT_THAT(client().set_share(change).error().message, HasSubstr("set the memory on gpu 0"));
  EXPECT_EQ(grant.cores, 2000u);
  EXPECT_EQ(lease.grant().generation, 1u);
  change.memory = {model::MemoryQuantity::Kind::kBytes, limit + kTestGiB};
  ASSERT_TRUE(client().set_share(change));
  EXPECT_EQ(grant.memory_limit_bytes, limit + kTestGiB);
  EXPECT_EQ(grant.cores, 3000u);
}

TEST_F(ComputeTest, UnderFairALeaseTakesAUnit) {
  GpuChange change;
  change.policy = wire::Policy::kFair;
  change.max_inst = 2;
  ASSERT_TRUE(set_gpu(change));
  ASSERT_TRUE(share("a", 0));
  ASSERT_TRUE(share("b", 0));
  const auto third = share("c", 0);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().message, HasSubstr("50% asked"));
  EXPECT_EQ(compute_of("a").share, 5000u);
}

TEST_F(ComputeTest, WhatWasSetForAGpuOutlivesTheBroker) {
  GpuChange change;
  change.policy = wire::Policy::kFixed;
  change.release_auto = true;
  change.on_bypass = OnBypass::kStop;
  ASSERT_TRUE(set_gpu(change));
  ASSERT_TRUE(share("a", 3000));
  kill_broker();
  start_broker();
  const auto gpus = client().gpus("fake");
  ASSERT_TRUE(gpus);
  EXPECT_EQ(gpus->at(0).policy, wire::Policy::kFixed);
  EXPECT_TRUE(gpus->at(0).release_auto);
  EXPECT_EQ(gpus->at(0).on_bypass, OnBypass::kStop);
  EXPECT_EQ(gpus->at(1).policy, wire::Policy::kBurst);
  EXPECT_EQ(compute_of("a").policy, wire::Policy::kFixed);
}

TEST_F(ComputeTest, WordsThatCannotBeMeantAreRefused) {
  GpuChange change;
  change.max_inst = 26;
  EXPECT_FALSE(set_gpu(change));
  change = {};
  change.policy = wire::Policy{8};
  EXPECT_FALSE(set_gpu(change));
  change = {};
  change.prio_ratio = 10;
  EXPECT_FALSE(set_gpu(change));
  ASSERT_TRUE(share("a", 0));
  ComputeChange lease;
  lease.lease = "a";
  lease.weight = 21;
  EXPECT_FALSE(client().set_compute(lease));
  lease = {};
  lease.lease = "a";
  lease.gpu = "1";
  lease.cores = 100;
  EXPECT_THAT(client().set_compute(lease).error().message, HasSubstr("it has 0"));
}

TEST_F(ComputeTest, TheGateOpensForWhoAsks) {
  const auto lease = share("a", 3000);
  ASSERT_TRUE(lease);
  Tenant tenant(lease->directory);
  tenant.ask();
  EXPECT_TRUE(tenant.answers());
}

TEST_F(ComputeTest, TheNextBrokerOpensTheGateWithinASecond) {
  const auto a = share("a", 3000);
  const auto b = share("b", 3000);
  Tenant first(a->directory), second(b->directory);
  first.ask();
  ASSERT_TRUE(first.answers());
  kill_broker();
  second.ask();
  EXPECT_FALSE(second.answers(50));  // nobody is there to open it
  start_broker();
  EXPECT_TRUE(second.answers(1000));
}

TEST_F(ComputeTest, WorkThatPassesTheGateIsShownAndKeptInMind) {
  const auto lease = share("a", 3000);
  Tenant tenant(lease->directory);
  use(tenant.pid(), 60);
  ASSERT_TRUE(eventually([&] { return compute_of("a").offender; }));
  EXPECT_GT(compute_of("a").bypasses, 0u);
  EXPECT_GT(compute_of("a").bypass_ns, 10'000'000u);
  use(0, 0);
  kill_broker();
  start_broker();
  EXPECT_TRUE(compute_of("a").offender);
}

TEST_F(ComputeTest, LittleUseOutsideTheWindowsIsNoOffence) {
  const auto lease = share("a", 3000);
  Tenant tenant(lease->directory);
  use(tenant.pid(), 5);
  usleep(1'500'000);
  EXPECT_FALSE(compute_of("a").offender);
}

TEST_F(ComputeTest, WhereStopIsSetItsProcessesAreStopped) {
  GpuChange change;
  change.on_bypass = OnBypass::kStop;
  ASSERT_TRUE(set_gpu(change));
  const auto lease = share("a", 3000);
  Tenant tenant(lease->directory);
  use(tenant.pid(), 60);
  int status = 0;
  ASSERT_EQ(waitpid(tenant.pid(), &status, WUNTRACED), tenant.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
}

TEST_F(ComputeTest, WhereEndIsSetTheLeaseEnds) {
  GpuChange change;
  change.on_bypass = OnBypass::kEnd;
  ASSERT_TRUE(set_gpu(change));
  const auto lease = share("a", 3000);
  Tenant tenant(lease->directory);
  use(tenant.pid(), 60);
  EXPECT_EQ(tenant.wait(), -SIGKILL);
  EXPECT_EQ(client().get_lease("a")->state, wire::LeaseState::kEnded);
}

TEST_F(ComputeTest, WhereBanIsSetItsGateStaysClosed) {
  GpuChange change;
  change.on_bypass = OnBypass::kBan;
  ASSERT_TRUE(set_gpu(change));
  const auto lease = share("a", 3000);
  Tenant tenant(lease->directory);
  use(tenant.pid(), 60);
  EXPECT_TRUE(eventually([&] { return compute_of("a").banned_for_ns > 0; }));
  EXPECT_EQ(compute_of("a").state, ComputeState::kBanned);
}

}  // namespace
}  // namespace aliquot::broker
