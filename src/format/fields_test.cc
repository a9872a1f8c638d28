#include "format/fields.h"

#include <gtest/gtest.h>

namespace aliquot::format {
namespace {

Json parsed(std::string_view text) {
  auto json = parse_json(text, "t");
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return json ? *json : Json();
}

template <typename T>
std::string fault_of(std::string_view text) {
  const Json json = parsed(text);
  T value{};
  Fields fields(json, "f.json");
  const Status status = fields.required("v", value).done();
  return status ? "none" : status.error().message;
}

TEST(Fields, FillsAStruct) {
  const Json json = parsed(R"({"s":"x","b":true,"d":1,"u":18446744073709551615,"l":[-1,2]})");
  std::string text;
  bool flag = false;
  double number = 0;
  std::uint64_t big = 0;
  std::vector<int> list;
  int kept = 7;
  Fields fields(json, "f.json");
  fields.required("s", text).required("b", flag).required("d", number).required("u", big);
  ASSERT_TRUE(fields.required("l", list).optional("none", kept).done());
  EXPECT_EQ(text, "x");
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, 1.0);
  EXPECT_EQ(big, 18446744073709551615ull);
  EXPECT_EQ(list, (std::vector<int>{-1, 2}));
  EXPECT_EQ(kept, 7);
}

TEST(Fields, NamesTheFileAndTheKeyThatNobodyKnows) {
  const Json json = parsed(R"({"s":"x","speling":1})");
  std::string text;
  Fields fields(json, "f.json");
  EXPECT_EQ(fields.required("s", text).done().error().message, "f.json: speling: unknown key");
}

TEST(Fields, SaysWhatIsMissingAndWhatHasTheWrongType) {
  EXPECT_EQ(fault_of<int>("{}"), "f.json: v: missing");
  EXPECT_EQ(fault_of<int>(R"({"v":"1"})"), "f.json: v: expected a whole number, not a string");
  EXPECT_EQ(fault_of<int>(R"({"v":1.5})"), "f.json: v: expected a whole number, not a number");
  EXPECT_EQ(fault_of<std::string>(R"({"v":1})"),
            "f.json: v: expected a string, not a whole number");
  EXPECT_EQ(fault_of<std::vector<int>>(R"({"v":[1,null]})"),
            "f.json: v[1]: expected a whole number, not null");
  EXPECT_EQ(fault_of<bool>("[]"), "f.json: expected an object, not a list");
}

TEST(Fields, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(fault_of<std::uint8_t>(R"({"v":256})"), "f.json: v: out of range");
  EXPECT_EQ(fault_of<std::uint64_t>(R"({"v":-1})"), "f.json: v: out of range");
  EXPECT_EQ(fault_of<std::int64_t>(R"({"v":9223372036854775808})"), "f.json: v: out of range");
  EXPECT_EQ(fault_of<std::int8_t>(R"({"v":-128})"), "none");
}

TEST(Fields, KeepsTheFirstFaultAndNamesInnerPlaces) {
  const Json json = parsed(R"({"in":{"a":"x","b":"y"}})");
  int number = 0;
  Fields inner(*json.find("in"), Fields(json, "f.json").place("in"));
  inner.required("a", number).required("b", number).reject("c", "late");
  EXPECT_EQ(inner.done().error().message, "f.json: in.a: expected a whole number, not a string");
}

}  // namespace
}  // namespace aliquot::format
