#include "cli/compute_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::cli {
namespace {

using broker::ComputeState;
using testing::HasSubstr;

broker::LeaseRow lease() {
  broker::LeaseRow row;
  row.name = "a-name-of-15-ch";
  broker::UsageRow usage;
  usage.index = 12;
  usage.cores = 1250;
  usage.launches = 12'345'678;
  usage.waiting_ns = 1'240'000'000;
  usage.compute.policy = wire::Policy::kBestEffort;
  usage.compute.busy = 1249;
  usage.compute.state = ComputeState::kPaused;
  row.gpus = {usage};
  return row;
}

TEST(ComputeTable, ShowsEachShareWithinEightyColumns) {
  broker::LeaseRow row = lease();
  row.gpus.push_back(row.gpus[0]);
  row.gpus[1].compute.capped = true;
  row.gpus[1].compute.share_class = wire::ShareClass::kOnline;
  const std::string text = compute_table({row});
  EXPECT_THAT(text,
              HasSubstr("12.5%  best-effort  offline   12%    1.2s    12345k  paused by online"));
  EXPECT_THAT(text, HasSubstr("12.5%="));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    EXPECT_LE(end - start, 80u + 16u) << text.substr(start, end - start);
}

TEST(ComputeTable, ABanSaysHowLongAndAnOffenderIsCalledOne) {
  broker::ComputeRow row;
  row.offender = true;
  EXPECT_EQ(compute_remark(row), "bypasses the gate");
  row.state = ComputeState::kBanned;
  row.banned_for_ns = 250'000'000;
  EXPECT_EQ(compute_remark(row), "banned 250ms");
}

TEST(ComputeJson, HasWhatTheTableShows) {
  const std::string text = compute_json(lease().gpus[0]).dump();
  EXPECT_THAT(text, HasSubstr("\"state\":\"paused by online\""));
  EXPECT_THAT(text, HasSubstr("\"cores_percent\":12.5"));
  EXPECT_THAT(text, HasSubstr("\"policy\":\"best-effort\""));
}

}  // namespace
}  // namespace aliquot::cli
