#include "model/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::model {
namespace {

using testing::HasSubstr;

std::uint64_t bytes(std::string_view text) {
  const auto parsed = parse_memory(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? parsed->value : 0;
}

TEST(ParseMemory, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(bytes("4GiB"), 4 * kGiB);
  EXPECT_EQ(bytes("1.5GiB"), kGiB + kGiB / 2);
  EXPECT_EQ(bytes("300MiB"), 300 * kMiB);
  EXPECT_EQ(bytes("512MB"), 512'000'000u);
  EXPECT_EQ(bytes("0.001KB"), 1u);
  EXPECT_EQ(bytes("3.5TiB"), 7ull << 39);
  EXPECT_EQ(bytes("17B"), 17u);
}

TEST(ParseMemory, PercentIsTakenOfTheGpu) {
  const auto quarter = parse_memory("25%");
  ASSERT_TRUE(quarter);
  EXPECT_EQ(quarter->bytes_of(80 * kGiB), 20 * kGiB);
  EXPECT_EQ(parse_memory("12.5%")->bytes_of(1000), 125u);
  EXPECT_EQ(parse_memory("100%")->bytes_of((1ull << 42) - 1), (1ull << 42) - 1);
}

TEST(ParseMemory, UnlimitedIsAWordOfItsOwn) {
  EXPECT_EQ(parse_memory("unlimited")->bytes_of(7), 7u);
  EXPECT_FALSE(parse_memory("Unlimited"));
}

TEST(ParseMemory, RefusesWhatCannotBeMeantAndNamesIt) {
  for (const char* text :
       {"",      "0",      "0GiB", "0%",  "-1GiB",  "+4GiB", "4",     "4096",    "GiB",
        "4 GiB", "4GiBs",  "4gib", "4Gi", "1e3MiB", ".5GiB", "5.GiB", "1..5GiB", "0x10MiB",
        "101%",  "0.001%", "0.4B", "nan", "inf%",   "4GiB ", "4\nGiB"}) {
    const auto parsed = parse_memory(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr('"' + std::string(text) + '"'));
  }
}

TEST(ParseMemory, RefusesOverflowInsteadOfWrapping) {
  for (const char* text : {"18446744073709551616B", "99999999999999999999GiB", "17179869184GiB",
                           "4TiB", "4398046511104B"})
    EXPECT_FALSE(parse_memory(text)) << text;
  EXPECT_EQ(bytes("4398046511103B"), kLargestMemory);
}

TEST(ParseMemory, TellsOfAMissingUnit) {
  EXPECT_THAT(parse_memory("4096").error().message, HasSubstr("has no unit"));
}

TEST(ParseCores, ReadsPercentagesOfOneGpu) {
  EXPECT_EQ(*parse_cores("30"), 3000u);
  EXPECT_EQ(*parse_cores("12.5%"), 1250u);
  EXPECT_EQ(*parse_cores("100"), kWholeGpu);
}

TEST(ParseCores, RefusesNothingTooMuchAndJunk) {
  for (const char* text : {"0", "-5", "101", "30 %", "thirty", "", "1.234", "%"})
    EXPECT_FALSE(parse_cores(text)) << text;
}

TEST(QuantityText, ReadsBackAsTheSameAmount) {
  for (const std::uint64_t amount : std::initializer_list<std::uint64_t>{
           4 * kGiB, kGiB + kGiB / 2, 300 * kMiB, 17, kKiB, 3ull << 40})
    EXPECT_EQ(bytes(memory_text(amount)), amount) << memory_text(amount);
  EXPECT_EQ(memory_text(80 * kGiB - 1), "79.99GiB");
  EXPECT_EQ(memory_text(1536), "1.5KiB");
  EXPECT_EQ(cores_text(3000), "30%");
  EXPECT_EQ(cores_text(1250), "12.5%");
  EXPECT_EQ(cores_text(1), "0.01%");
}

}  // namespace
}  // namespace aliquot::model
