#include "format/yaml.h"

#include <gtest/gtest.h>

namespace aliquot::format {
namespace {

std::string json_of(std::string_view text) {
  const Result<Json> json = parse_yaml(text, "test.yaml");
  return json ? json->dump() : json.error().message;
}

TEST(Yaml, GivesTheSameValuesAsJson) {
  EXPECT_EQ(json_of("a: 1\nb: [x, 2.5, true, null, ~]\nc: {d: }\n"),
            R"({"a":1,"b":["x",2.5,true,null,null],"c":{"d":null}})");
}

TEST(Yaml, TakesWhatIsQuotedForText) {
  EXPECT_EQ(json_of("a: \"1\"\nb: 'true'\nc: |\n  12\n"), R"({"a":"1","b":"true","c":"12\n"})");
}

TEST(Yaml, LeavesAloneWhatOnlyStartsLikeANumber) {
  EXPECT_EQ(json_of("a: 10.0.0.1\nb: 4GiB\nc: 60s\nd: -x\ne: 1_000\nf: .inf\n"),
            R"({"a":"10.0.0.1","b":"4GiB","c":"60s","d":"-x","e":"1_000","f":".inf"})");
}

TEST(Yaml, ReadsJsonAsWell) { EXPECT_EQ(json_of(R"({"a": [1, "2"]})"), R"({"a":[1,"2"]})"); }

TEST(Yaml, OfNothingIsNull) { EXPECT_EQ(json_of(""), "null"); }

TEST(Yaml, IsRefusedWithThePlaceOfTheFault) {
  EXPECT_EQ(json_of("a: 1\na: 2\n"), "test.yaml:2:1: 'a' is given twice");
  EXPECT_EQ(json_of("a: [1\n").find("test.yaml:2:1: "), 0u);
  EXPECT_EQ(json_of("? [1]\n: 2\n"), "test.yaml:1:3: a key that is no scalar");
  EXPECT_NE(json_of("a: 1\n---\nb: 2\n").find("a second document"), std::string::npos);
  EXPECT_NE(json_of("a: *nobody\n").find("test.yaml:1:"), std::string::npos);
}

TEST(Yaml, OfTooManyLevelsIsRefused) {
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += "[";
  for (int i = 0; i < 70; ++i) deep += "]";
  EXPECT_NE(json_of(deep).find("more than 64 levels"), std::string::npos);
}

TEST(Yaml, WhoseAliasesMultiplyIsRefused) {
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) text += "," + before;
    text += "]\n";
  }
  EXPECT_NE(json_of(text).find("more than 100000 values"), std::string::npos);
}

}  // namespace
}  // namespace aliquot::format
