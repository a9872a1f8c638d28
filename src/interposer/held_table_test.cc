#include "interposer/held_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "interposer/elf_lookup.h"
#include "interposer/image_size.h"
#include "interposer/mapped_array.h"

namespace aliquot::interposer {
namespace {

Held entry(std::uint64_t name, std::uint64_t bytes, std::uint64_t owner = 0) {
  return {name, owner, bytes, 1, 2};
}

TEST(HeldTable, GivesBackWhatWasPutInOnce) {
  HeldTable table;
  Held replaced;
  ASSERT_TRUE(table.insert(entry(0x1000, 77), &replaced));
  EXPECT_EQ(replaced.name, 0u);
  EXPECT_EQ(table.find(0x1000).bytes, 77u);
  const Held taken = table.take(0x1000);
  EXPECT_EQ(taken.bytes, 77u);
  EXPECT_EQ(taken.gpu, 2u);
  EXPECT_EQ(table.take(0x1000).name, 0u);
  EXPECT_EQ(table.take(0).name, 0u);
  table.forget_all();
}

TEST(HeldTable, ANameThatComesAgainReplacesTheOldEntryAndSaysSo) {
  HeldTable table;
  Held replaced;
  ASSERT_TRUE(table.insert(entry(0x1000, 1), &replaced));
  ASSERT_TRUE(table.insert(entry(0x1000, 2), &replaced));
  EXPECT_EQ(replaced.bytes, 1u);
  EXPECT_EQ(table.size(), 1u);
  table.forget_all();
}

TEST(HeldTable, AgreesWithAMapOverRandomOperations) {
  HeldTable table;
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t name = (random() % 5000 + 1) * 512;
    if (random() % 2 == 0) {
      Held replaced;
      ASSERT_TRUE(table.insert(entry(name, static_cast<std::uint64_t>(i)), &replaced));
      const auto old = model.find(name);
      EXPECT_EQ(replaced.bytes, old == model.end() ? 0 : old->second);
      model[name] = static_cast<std::uint64_t>(i);
    } else {
      const Held taken = table.take(name);
      const auto old = model.find(name);
      ASSERT_EQ(taken.name != 0, old != model.end());
      if (old != model.end()) {
        EXPECT_EQ(taken.bytes, old->second);
        model.erase(old);
      }
    }
  }
  EXPECT_EQ(table.size(), model.size());
  table.forget_all();
}

TEST(HeldTable, TakesAllOfOneOwner) {
  HeldTable table;
  Held replaced;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    ASSERT_TRUE(table.insert(entry(i * 512, i, i % 3), &replaced));
  const auto of = [](const Held& held, std::uint64_t owner) { return held.owner == owner; };
  int taken = 0;
  while (table.take_any(of, 1).name != 0) ++taken;
  EXPECT_EQ(taken, 334);
  EXPECT_EQ(table.size(), 666u);
  table.forget_all();
}

TEST(HeldTable, ThreadsDoNotDisturbEachOther) {
  HeldTable table;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t)
    threads.emplace_back([&table, t] {
      Held replaced;
      for (std::uint64_t i = 1; i <= 5000; ++i) {
        const std::uint64_t name = (t << 40) + i * 512;
        EXPECT_TRUE(table.insert(entry(name, i), &replaced));
        EXPECT_EQ(table.take(name).bytes, i);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table.size(), 0u);
  table.forget_all();
}

TEST(MappedArray, InsertsAndTakesInPlace) {
  MappedArray<int> array;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(array.insert(0, i));
  EXPECT_EQ(array[0], 999);
  EXPECT_EQ(array.take(1), 998);
  EXPECT_EQ(array.size(), 999u);
  EXPECT_EQ(array[998], 0);
  array.forget_all();
}

TEST(ImageSize, IsWhatEachFormSaysOfItself) {
  EXPECT_EQ(image_bytes(nullptr), 0u);
  EXPECT_EQ(image_bytes(""), 0u);
  EXPECT_EQ(image_bytes(".version 8.0"), 12u);
  struct {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1, header_bytes = 16;
    std::uint64_t payload = 1000;
  } fat;
  EXPECT_EQ(image_bytes(&fat), 1016u);
  struct {
    std::uint32_t magic = 0x466243B1, version = 1;
    const void* data;
  } wrapper;
  wrapper.data = &fat;
  EXPECT_EQ(image_bytes(&wrapper), 1016u);
}

TEST(ElfLookup, FindsLibcsOwnDlsymAndNothingThatIsNotThere) {
  EXPECT_NE(find_loaded_symbol("libc.so.6", "dlsym"), nullptr);
  EXPECT_EQ(find_loaded_symbol("libc.so.6", "no_such_function"), nullptr);
  EXPECT_EQ(find_loaded_symbol("libnothing.so.1", "dlsym"), nullptr);
  EXPECT_TRUE(lies_in_object(find_loaded_symbol("libc.so.6", "getpid"), "libc.so.6"));
  EXPECT_FALSE(lies_in_object(find_loaded_symbol("libc.so.6", "getpid"), "libcuda.so.1"));
}

}  // namespace
}  // namespace aliquot::interposer
