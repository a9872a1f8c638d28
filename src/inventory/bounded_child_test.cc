#include "inventory/bounded_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace aliquot::inventory {
namespace {

Result<std::string> run(const std::function<std::string()>& work, Nanoseconds limit) {
  auto child = BoundedChild::begin(work);
  if (!child) return child.error();
  return child->wait(MonotonicClock().now() + limit);
}

TEST(BoundedChild, GivesWhatTheWorkReturned) {
  EXPECT_EQ(run([] { return std::string("answer"); }, 5 * kSecond).value(), "answer");
  std::string long_text(300'000, 'x');
  EXPECT_EQ(run([&] { return long_text; }, 5 * kSecond).value(), long_text);
  EXPECT_EQ(run([] { return std::string(); }, 5 * kSecond).value(), "");
}

TEST(BoundedChild, AHangEndsAtTheDeadlineAndLeavesNoProcess) {
  const Nanoseconds began = MonotonicClock().now();
  const auto answer = run(
      [] {
        for (;;) pause();
        return std::string();
      },
      100 * kMillisecond);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kUnavailable);
  EXPECT_LT(MonotonicClock().now() - began, 5 * kSecond);
  // The killed child may need a moment to be reaped.
  for (int i = 0; i < 1000 && waitpid(-1, nullptr, WNOHANG) == 0; ++i) usleep(1000);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(BoundedChild, ACrashIsAnErrorNotAnAnswer) {
  const auto answer = run(
      []() -> std::string {
        raise(SIGKILL);
        return "never";
      },
      5 * kSecond);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "the process that asked the driver died");
}

TEST(BoundedChild, ManyRunAtOnce) {
  std::vector<BoundedChild> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(*BoundedChild::begin([i] { return std::to_string(i); }));
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(children[i].wait(MonotonicClock().now() + 5 * kSecond).value(), std::to_string(i));
}

}  // namespace
}  // namespace aliquot::inventory
