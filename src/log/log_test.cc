#include "log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/files.h"

namespace aliquot::log {
namespace {

namespace fs = std::filesystem;

std::string fresh_path() {
  return (fs::path(testing::TempDir()) / ("log-test-" + std::to_string(getpid()))).string();
}

TEST(Log, WritesLevelPartAndText) {
  const std::string path = fresh_path();
  const auto log = Log::to_file(path, "broker");
  ASSERT_TRUE(log);
  log->info("lease a: created {}");
  log->named("lease").error("x");
  log->debug("not shown");
  const std::string text = *read_file(path);
  EXPECT_THAT(text, testing::HasSubstr(" info broker: lease a: created {}\n"));
  EXPECT_THAT(text, testing::HasSubstr(" error lease: x\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("not shown")));
  fs::remove(path);
}

TEST(Log, SaysWhichFileItCannotOpen) {
  const auto log = Log::to_file("/proc/none/x", "broker");
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, testing::HasSubstr("/proc/none/x"));
}

TEST(Log, ASilentOneTakesAnything) { Log().error("nobody hears"); }

}  // namespace
}  // namespace aliquot::log
