#include "simdriver/cuda/visible_devices.h"

#include <gtest/gtest.h>

namespace aliquot::simdriver {
namespace {

using List = std::vector<unsigned>;

class VisibleDevices : public testing::Test {
 protected:
  VisibleDevices() : all_(4) {
    for (unsigned i = 0; i < all_.size(); ++i) {
      all_[i].uuid.fill(0xab);
      all_[i].uuid[0] = static_cast<std::uint8_t>(i < 2 ? 0x10 : 0x20 + i);
      all_[i].uuid[15] = static_cast<std::uint8_t>(i);
    }
  }
  List visible(const char* list) { return visible_devices(all_, list); }
  std::vector<DeviceInfo> all_;
};

TEST_F(VisibleDevices, AreAllWhenUnsetAndNoneWhenEmpty) {
  EXPECT_EQ(visible(nullptr), (List{0, 1, 2, 3}));
  EXPECT_EQ(visible(""), List{});
}

TEST_F(VisibleDevices, ComeInTheOrderOfTheList) {
  EXPECT_EQ(visible("2,0"), (List{2, 0}));
  EXPECT_EQ(visible(" 3 , 1"), (List{3, 1}));
}

TEST_F(VisibleDevices, EndAtTheFirstBadEntry) {
  EXPECT_EQ(visible("1,-1,2"), List{1});
  EXPECT_EQ(visible("1,9,2"), List{1});
  EXPECT_EQ(visible("-1"), List{});
  EXPECT_EQ(visible("no"), List{});
}

TEST_F(VisibleDevices, AreNoneWhenOneIsNamedTwice) { EXPECT_EQ(visible("1,0,1"), List{}); }

TEST_F(VisibleDevices, CanBeNamedByAPrefixOfTheirUuidThatFitsOneOnly) {
  EXPECT_EQ(visible("GPU-22"), List{2});
  EXPECT_EQ(visible("GPU-23abab,GPU-22"), (List{3, 2}));
  EXPECT_EQ(visible("GPU-10"), List{});
  EXPECT_EQ(visible("GPU-10ababab-abab-abab-abab-abababababab00"), List{});
  EXPECT_EQ(visible("GPU-10ababab-abab-abab-abab-ababababab01"), List{1});
}

}  // namespace
}  // namespace aliquot::simdriver
