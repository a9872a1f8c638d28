#include "format/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace aliquot::format {
namespace {

Json parsed(std::string_view text) {
  auto json = parse_json(text, "t");
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return json ? *json : Json();
}

std::string fault(std::string_view text) {
  auto json = parse_json(text, "t");
  EXPECT_FALSE(json);
  return json ? "" : json.error().message;
}

TEST(Json, ReadsWhatItPrints) {
  const std::string text =
      R"({"z":[1,-2,18446744073709551615,2.5,true,null],"a":{"quote\"":"tab\t","empty":[]}})";
  EXPECT_EQ(parsed(text).dump(), text);
  EXPECT_EQ(parsed(parsed(text).dump(2)), parsed(text));
}

TEST(Json, KeepsTheOrderOfKeys) {
  const Json json = parsed(R"({"z":1,"a":2,"m":3})");
  EXPECT_EQ(json.if_object()->at(0).key, "z");
  EXPECT_EQ(json.if_object()->at(1).key, "a");
  EXPECT_EQ(*json.find("m")->if_int(), 3);
  EXPECT_EQ(json.find("q"), nullptr);
}

TEST(Json, SaysLineAndColumnOfAMistake) {
  EXPECT_EQ(fault("{\n  \"a\": 1,\n  \"b\" 2}").substr(0, 6), "t:3:7:");
  EXPECT_EQ(fault("").substr(0, 6), "t:1:1:");
  EXPECT_EQ(fault("[1] x").substr(0, 6), "t:1:5:");
}

TEST(Json, RefusesAKeyGivenTwice) {
  EXPECT_EQ(fault(R"({"a":{"b":1,"b":2}})"), "t: key \"b\" is given twice");
}

TEST(Json, RefusesDeepNestingInsteadOfOverflowingTheStack) {
  EXPECT_EQ(fault(std::string(100000, '[')), "t: more than 64 levels");
  const std::string deepest = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(parsed(deepest).dump(), deepest);
}

TEST(Json, KeepsEveryBitOfLargeIntegers) {
  EXPECT_EQ(*parsed("9223372036854775807").if_int(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parsed("9223372036854775808").if_big(), 9223372036854775808ull);
  EXPECT_EQ(Json(std::uint64_t{5}), Json(5));
}

TEST(Json, PrintsWhatHasNoJsonFormWithoutFailing) {
  EXPECT_EQ(Json("\xff").dump(), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
}

TEST(Json, BuildsFromNothing) {
  Json json;
  json.set("list", Json().append(1).append("two")).set("n", 1).set("n", 2u);
  EXPECT_EQ(json.dump(), R"({"list":[1,"two"],"n":2})");
  EXPECT_EQ(json.dump(2), "{\n  \"list\": [\n    1,\n    \"two\"\n  ],\n  \"n\": 2\n}");
}

}  // namespace
}  // namespace aliquot::format
