#include "cli/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::cli {
namespace {

using broker::ComputeState;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kGiB = 1ull << 30;

broker::LeaseRow lease(const std::string& name, std::uint32_t gpu) {
  broker::LeaseRow row;
  row.name = name;
  row.id = gpu + 1;
  row.driver = "sim:lab";
  broker::UsageRow usage;
  usage.index = gpu;
  usage.uuid = "GPU-" + std::to_string(gpu);
  usage.limit_bytes = 8 * kGiB;
  usage.used_bytes = 2 * kGiB;
  usage.refusals = 3;
  usage.waiting_ns = 1'500'000'000;
  usage.compute.share = 5000;
  usage.compute.busy = 2500;
  usage.compute.state = ComputeState::kHolding;
  row.gpus = {usage};
  return row;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  return lines;
}

TEST(Top, ShowsALeaseInOneLineOfEightyColumns) {
  TopFrame frame{{lease("a-very-long-name-indeed", 12)}, {}, 0};
  frame.leases[0].gpus[0].compute.state = ComputeState::kPaused;
  frame.leases[0].gpus[0].limit_bytes = 80 * kGiB;
  frame.leases[0].gpus[0].used_bytes = 79 * kGiB;
  const auto lines = lines_of(top_text(frame, nullptr, {}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("1 lease on sim:lab (simulated)"));
  EXPECT_THAT(lines[2], HasSubstr("a-very-lon  12 ########    79/80G ##..|...  25/50%"));
  EXPECT_THAT(lines[2], HasSubstr("paused by online"));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Top, WaitingIsARateOnceThereIsAFrameBefore) {
  const TopFrame before{{lease("a", 0)}, {}, kSecond};
  TopFrame frame{{lease("a", 0)}, {}, 2 * kSecond};
  frame.leases[0].gpus[0].waiting_ns += 400'000'000;
  EXPECT_THAT(top_text(frame, nullptr, {}), HasSubstr(" 1.9s "));
  EXPECT_THAT(top_text(frame, &before, {}), HasSubstr(" 40% "));
}

TEST(Top, ColorsOnlyWhereAsked) {
  const TopFrame frame{{lease("a", 0)}, {}, 0};
  EXPECT_THAT(top_text(frame, nullptr, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(top_text(frame, nullptr, {.color = true}), HasSubstr("\x1b[32mrunning\x1b[0m"));
}

TEST(Top, WhatDoesNotFitIsCounted) {
  TopFrame frame;
  for (unsigned i = 0; i < 20; ++i) frame.leases.push_back(lease("l" + std::to_string(i), i));
  const auto lines = lines_of(top_text(frame, nullptr, {.lines = 10}));
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.back(), "and 13 more");
}

TEST(Top, SortsByGpuAndNamesWhoNeverAttached) {
  const TopFrame frame{{lease("b", 1), lease("a", 0)}, {{"b", 77, 1, kGiB}}, 0};
  const auto lines = lines_of(top_text(frame, nullptr, {}));
  EXPECT_THAT(lines[2], HasSubstr("a "));
  EXPECT_THAT(lines[4], HasSubstr("process 77 of lease b"));
}

TEST(Top, NothingIsALineToo) {
  EXPECT_THAT(top_text({}, nullptr, {}), HasSubstr("no lease (aliquot run makes one)"));
}

}  // namespace
}  // namespace aliquot::cli
