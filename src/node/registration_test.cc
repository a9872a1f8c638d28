#include "node/registration.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

const SocketMark kFirst{1, 10, 1000}, kSameInode{1, 10, 2000};

// A rule that has served and registered with kFirst, with a stream.
struct Registered {
  Registered() {
    EXPECT_EQ(rule.next({kFirst, false, false}, now), Step::kServe);
    rule.served(true, now);
    EXPECT_EQ(rule.next({kFirst, true, false}, now), Step::kRegister);
    rule.registered(kFirst, now);
    EXPECT_EQ(rule.next({kFirst, true, true}, now), Step::kWait);
  }
  RegistrationRule rule;
  Nanoseconds now = 100 * kSecond;
};

TEST(RegistrationRule, NothingIsServedIntoADirectoryThatKubeletMayStillWipe) {
  RegistrationRule rule;
  EXPECT_EQ(rule.next({std::nullopt, false, false}, 0), Step::kWait);
}

TEST(RegistrationRule, ServesBeforeItRegistersAndThenIsQuiet) {
  Registered it;
  for (int s = 0; s < 100; ++s)
    EXPECT_EQ(it.rule.next({kFirst, true, true}, it.now + s * kSecond), Step::kWait);
}

TEST(RegistrationRule, AKubeletWhoseSocketHasTheOldInodeIsStillANewOne) {
  Registered it;
  EXPECT_EQ(it.rule.next({kSameInode, true, false}, it.now), Step::kRegister);
}

TEST(RegistrationRule, AWipedDirectoryIsServedAnewAndRegisteredOnce) {
  Registered it;
  EXPECT_EQ(it.rule.next({kSameInode, false, false}, it.now), Step::kServe);
  it.rule.served(true, it.now);
  EXPECT_EQ(it.rule.next({kSameInode, true, false}, it.now), Step::kRegister);
  it.rule.registered(kSameInode, it.now);
  // The event of the socket's creation arrives only now: nothing is new.
  EXPECT_EQ(it.rule.next({kSameInode, true, false}, it.now), Step::kWait);
}

TEST(RegistrationRule, AStreamThatStaysAwayBringsARegistration) {
  Registered it;
  EXPECT_EQ(it.rule.next({kFirst, true, false}, it.now + 2 * kSecond), Step::kWait);
  EXPECT_EQ(it.rule.next({kFirst, true, false}, it.now + 4 * kSecond), Step::kRegister);
}

TEST(RegistrationRule, ARefusalIsTriedAgainLessAndLessOften) {
  Registered it;
  Nanoseconds now = it.now;
  Nanoseconds last = 0;
  EXPECT_EQ(it.rule.next({kSameInode, true, false}, now), Step::kRegister);
  for (int round = 0; round < 12; ++round) {
    it.rule.refused(now);
    const Nanoseconds from = now;
    while (it.rule.next({kSameInode, true, false}, now) == Step::kWait) now += 10 * kMillisecond;
    EXPECT_GE(now - from, last);
    EXPECT_LE(now - from, 10 * kSecond);
    last = now - from;
  }
  EXPECT_EQ(last, 10 * kSecond);
}

TEST(RegistrationRule, ANewKubeletIsTriedAtOnceWhateverTheOldOneSaid) {
  Registered it;
  for (int i = 0; i < 10; ++i) it.rule.refused(it.now);
  EXPECT_EQ(it.rule.next({kFirst, true, false}, it.now), Step::kWait);
  EXPECT_EQ(it.rule.next({kSameInode, true, false}, it.now), Step::kRegister);
}

TEST(RegistrationRule, AKubeletThatIsAwayIsWaitedFor) {
  Registered it;
  EXPECT_EQ(it.rule.next({std::nullopt, true, false}, it.now + kSecond), Step::kWait);
  EXPECT_EQ(it.rule.next({std::nullopt, false, false}, it.now + 60 * kSecond), Step::kWait);
}

}  // namespace
}  // namespace aliquot::node
