#include "simdriver/mig_layout.h"

#include <gtest/gtest.h>

#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

class Mig : public testing::Test {
 protected:
  MigResult create(unsigned profile, std::optional<unsigned> start = std::nullopt) {
    return layout_.create(profile, start, id_);
  }
  MigLayout layout_{make_machine({.node = "a100x1", .name = "", .cuda = ""}, *simulator_directory())
                        ->models[0]
                        .mig};
  unsigned id_ = 0;
};

// Profile ids of the A100: 19 1g, 20 1g+me, 15 1g wide, 14 2g, 9 3g, 5 4g, 0 7g.
TEST_F(Mig, NothingIsCreatedWhileItIsOff) {
  EXPECT_EQ(create(19), MigResult::kOff);
  EXPECT_EQ(layout_.remaining(19), 0u);
  EXPECT_EQ(layout_.switch_mode(true), MigResult::kDone);
  EXPECT_EQ(create(19), MigResult::kDone);
  EXPECT_EQ(layout_.switch_mode(false), MigResult::kInUse);
  EXPECT_EQ(layout_.destroy(id_), MigResult::kDone);
  EXPECT_EQ(layout_.switch_mode(false), MigResult::kDone);
}

TEST_F(Mig, SevenSmallInstancesFillTheGpu) {
  layout_.switch_mode(true);
  EXPECT_EQ(layout_.remaining(19), 7u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(create(19), MigResult::kDone);
  EXPECT_EQ(create(19), MigResult::kNoRoom);
  EXPECT_EQ(create(15), MigResult::kNoRoom);
}

TEST_F(Mig, AThreeSliceInstanceTakesFourSlots) {
  layout_.switch_mode(true);
  EXPECT_EQ(create(9), MigResult::kDone);
  EXPECT_EQ(layout_.gpu_instances()[0].size, 4u);
  EXPECT_EQ(layout_.remaining(19), 3u);      // slots 4, 5 and 6
  EXPECT_EQ(create(5), MigResult::kNoRoom);  // 4g only starts at 0
  EXPECT_EQ(create(9, 4), MigResult::kDone);
  EXPECT_EQ(layout_.remaining(19), 0u);
}

TEST_F(Mig, SevenAndOneIsNoLayout) {
  layout_.switch_mode(true);
  EXPECT_EQ(create(0), MigResult::kDone);
  EXPECT_EQ(create(19), MigResult::kNoRoom);
}

TEST_F(Mig, OneInstanceHasTheMediaEngines) {
  layout_.switch_mode(true);
  EXPECT_EQ(create(20), MigResult::kDone);
  EXPECT_EQ(create(20), MigResult::kNoRoom);
  EXPECT_EQ(create(19), MigResult::kDone);
}

TEST_F(Mig, PlacesAreThoseOfTheProfile) {
  layout_.switch_mode(true);
  EXPECT_EQ(create(14, 1), MigResult::kNoRoom);
  EXPECT_EQ(create(14, 2), MigResult::kDone);
  EXPECT_EQ(create(77), MigResult::kNoSuch);
  EXPECT_EQ(layout_.destroy(9), MigResult::kNoSuch);
}

TEST_F(Mig, ComputeInstancesShareTheSlicesOfTheirs) {
  layout_.switch_mode(true);
  ASSERT_EQ(create(9), MigResult::kDone);
  const unsigned parent = id_;
  EXPECT_EQ(layout_.create_compute(parent, 2, id_), MigResult::kDone);
  EXPECT_EQ(id_, 0u);
  EXPECT_EQ(layout_.create_compute(parent, 2, id_), MigResult::kNoRoom);
  EXPECT_EQ(layout_.create_compute(parent, 1, id_), MigResult::kDone);
  EXPECT_EQ(id_, 1u);
  EXPECT_EQ(layout_.destroy(parent), MigResult::kInUse);
  EXPECT_EQ(layout_.destroy_compute(parent, 0), MigResult::kDone);
  EXPECT_EQ(layout_.create_compute(parent, 2, id_), MigResult::kDone);
  EXPECT_EQ(id_, 0u);  // given out again
  EXPECT_EQ(layout_.destroy_compute(parent, 5), MigResult::kNoSuch);
}

}  // namespace
}  // namespace aliquot::simdriver
