#include "format/described.h"

#include <gtest/gtest.h>

namespace aliquot::format {
namespace {

enum class Color { kRed, kGreen };
[[maybe_unused]] std::string to_text(const Color& color) {
  return color == Color::kRed ? "red" : "green";
}
[[maybe_unused]] bool from_text(std::string_view text, Color& color) {
  color = text == "red" ? Color::kRed : Color::kGreen;
  return text == "red" || text == "green";
}

struct Wheel {
  unsigned inches = 0;
  bool operator==(const Wheel&) const = default;
};
template <typename V>
void describe(V& v, Wheel& wheel) {
  v("inches", wheel.inches);
}

struct Car {
  std::string name;
  Color color = Color::kRed;
  std::vector<Wheel> wheels;
  std::vector<int> marks;
  std::optional<Wheel> spare;
  std::optional<int> numa;
  bool operator==(const Car&) const = default;
};
template <typename V>
void describe(V& v, Car& car) {
  v("name", car.name);
  v("color", car.color);
  v("wheels", car.wheels);
  v("marks", car.marks);
  v("spare", car.spare);
  v("numa", car.numa);
}

std::string fault(std::string_view text) {
  const auto json = parse_json(text, "car.json");
  EXPECT_TRUE(json) << json.error().message;
  Car car;
  const Status read = read_described(*json, "car.json", car);
  return read ? "" : read.error().message;
}

TEST(Described, WhatIsWrittenReadsBack) {
  const Car car{"beetle", Color::kGreen, {{15}, {16}}, {1, -2}, Wheel{14}, std::nullopt};
  const Json json = write_described(car);
  EXPECT_EQ(json.dump(),
            R"({"name":"beetle","color":"green","wheels":[{"inches":15},{"inches":16}],)"
            R"("marks":[1,-2],"spare":{"inches":14}})");
  Car back;
  back.numa = 3;
  const Status read = read_described(json, "car.json", back);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(back, car);
}

TEST(Described, FaultsNameThePlace) {
  const std::string rest = R"("wheels":[],"marks":[]})";
  EXPECT_EQ(fault(R"({"name":"a","color":"blue",)" + rest), "car.json: color: not valid: blue");
  EXPECT_EQ(fault(R"({"name":"a","color":7,)" + rest),
            "car.json: color: expected a string, not a whole number");
  EXPECT_EQ(fault(R"({"name":"a",)" + rest), "car.json: color: missing");
  EXPECT_EQ(fault(R"({"name":"a","color":"red","extra":1,)" + rest),
            "car.json: extra: unknown key");
  EXPECT_EQ(fault(R"({"name":"a","color":"red","wheels":[{"inches":1},{"inches":-1}],"marks":[]})"),
            "car.json: wheels[1].inches: out of range");
  EXPECT_EQ(fault(R"({"name":"a","color":"red","wheels":{},"marks":[]})"),
            "car.json: wheels: expected a list, not an object");
  EXPECT_EQ(fault(R"({"name":"a","color":"red","spare":{"inch":1},)" + rest),
            "car.json: spare.inches: missing");
}

}  // namespace
}  // namespace aliquot::format
