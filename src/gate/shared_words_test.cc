#include "gate/shared_words.h"

#include <gtest/gtest.h>

#include <thread>

namespace aliquot::gate {
namespace {

struct Words {
  Window window() const {
    Window read;
    EXPECT_TRUE(read_window(first, rest, read));
    return read;
  }

  std::atomic<std::uint64_t> first{0};
  std::atomic<std::uint64_t> rest[3]{};
  std::atomic<std::uint32_t> sequence{0};
  std::atomic<std::uint64_t> report[kReportWords]{};
};

TEST(SharedWords, CarryAWindow) {
  Words words;
  const Window window{
      .open = true, .limited = true, .number = 7, .end = 5, .start = 4, .opened_at = 3};
  publish(window, words.first, words.rest);
  EXPECT_EQ(words.window(), window);
}

TEST(SharedWords, ChangeTheHalfThatWaitersSleepOnWithEveryWindow) {
  Words words;
  const Window window{.open = true, .limited = true, .number = 7, .end = 5};
  publish(window, words.first, words.rest);
  const auto before = static_cast<std::uint32_t>(words.first);
  publish(window, words.first, words.rest);
  EXPECT_NE(static_cast<std::uint32_t>(words.first), before);
  EXPECT_EQ(words.window(), window);
}

TEST(SharedWords, LeaveTheLaunchBitsAloneWhenTheCountWraps) {
  Words words;
  words.first = kChangesMask - (1u << kChangesShift);  // the last even count
  publish(Window{.open = true, .number = 9}, words.first, words.rest);
  EXPECT_TRUE(is_open_alone(words.first));
  EXPECT_EQ(words.first & kChangesMask, 0u);
  EXPECT_EQ(words.window().number, 9u);
}

TEST(SharedWords, DoNotHoldAReaderWhenTheirWriterWasKilled) {
  Words words;
  publish(TenantReport{.busy_ns = 11}, words.sequence, words.report);
  words.sequence |= 1;
  words.first |= 1u << kChangesShift;
  TenantReport report;
  EXPECT_FALSE(read_report(words.sequence, words.report, report));
  EXPECT_EQ(report.busy_ns, 11);
  Window window;
  EXPECT_FALSE(read_window(words.first, words.rest, window));
  publish(TenantReport{.busy_ns = 12}, words.sequence, words.report);
  EXPECT_EQ(words.sequence % 2, 0u);
}

TEST(SharedWords, AreReadWholeWhileTheyAreWritten) {
  Words words;
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (Nanoseconds i = 1; i <= 100'000; ++i) {
      publish(Window{.open = true, .end = i, .start = i, .opened_at = i}, words.first, words.rest);
      publish(TenantReport{.busy_ns = i, .busy_since = i, .last_launch = i}, words.sequence,
              words.report);
    }
    done = true;
  });
  while (!done) {
    Window window;
    TenantReport report;
    const bool whole_window = read_window(words.first, words.rest, window);
    const bool whole_report = read_report(words.sequence, words.report, report);
    ASSERT_TRUE(!whole_window || window.end == window.opened_at);
    ASSERT_TRUE(!whole_report || report.busy_ns == report.last_launch);
  }
}

}  // namespace
}  // namespace aliquot::gate
