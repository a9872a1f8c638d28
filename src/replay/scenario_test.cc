#include "replay/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/files.h"

namespace aliquot::replay {
namespace {

using ::testing::HasSubstr;

std::string shipped() {
  return *read_file(std::string(ALIQUOT_SOURCE_DIR) + "/docs/scenarios/self_driving.json");
}

std::string error_of(std::string_view text) {
  const auto scenario = parse_scenario(text, "s.json");
  return scenario ? "read" : scenario.error().message;
}

TEST(Scenario, TheSelfDrivingOneHappensAsItSays) {
  const auto scenario = parse_scenario(shipped(), "self_driving.json");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const Status status = check_scenario(*scenario);
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Scenario, NamesTheFirstActionThatDiffers) {
  Scenario scenario = *parse_scenario(shipped(), "self_driving.json");
  scenario.expect[3] = "60 s: nothing";
  const Status status = check_scenario(scenario);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("action 4 is '60 s: stop maps for perception'"));
}

TEST(Scenario, SaysWhereAFileIsWrong) {
  EXPECT_THAT(error_of(R"({"nodes":[{"name":"a","tier":"moon","gpus":1}],"events":[]})"),
              HasSubstr("nodes[0].tier"));
  EXPECT_THAT(error_of(R"({"nodes":[],"events":[{"at_s":1}]})"), HasSubstr("events[0]"));
  EXPECT_THAT(error_of(R"({"nodes":[],"events":[{"at_s":2,"finish":1},{"at_s":1,"finish":1}]})"),
              HasSubstr("before the event above"));
  EXPECT_THAT(error_of("{"), HasSubstr("s.json:1"));
}

}  // namespace
}  // namespace aliquot::replay
