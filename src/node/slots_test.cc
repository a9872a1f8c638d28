#include "node/slots.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

TEST(Slots, AnIdReadsBackAndKubeletTakesItsLength) {
  const Slot slot{"GPU-5f2a1c3e-0000-1111-2222-333344445555", 999};
  EXPECT_EQ(parse_slot_id(slot_id(slot)), slot);
  EXPECT_LE(slot_id(slot).size(), 63u);
}

TEST(Slots, WhatIsNoSlotIsNone) {
  for (const char* id : {"", "GPU-1", "::1", "GPU-1::", "GPU-1::x", "GPU-1::1x", "GPU-1::-1"})
    EXPECT_EQ(parse_slot_id(id), std::nullopt) << id;
}

TEST(Slots, ASetHasOneNameWhateverItsOrder) {
  EXPECT_EQ(set_key({"a::1", "b::2"}), set_key({"b::2", "a::1"}));
  EXPECT_NE(set_key({"a::1", "b::2"}), set_key({"a::1"}));
  EXPECT_NE(set_key({"a::1", "b::2"}), set_key({"a::1b::2"}));
  EXPECT_EQ(set_key({"a::1"}).size(), 16u);
}

TEST(Slots, EachGpuIsNamedOnce) {
  EXPECT_EQ(gpus_of({"B::0", "A::3", "B::1", "junk"}), (std::vector<std::string>{"B", "A"}));
}

TEST(Slots, WhatDiffersFromTheGpusOfferedIsToldByGpu) {
  EXPECT_EQ(unlike_slots({"B::0", "A::1", "A::0", "B::1"}, {"A", "B"}, 2), "");
  EXPECT_EQ(unlike_slots({"A::0", "C::0"}, {"A", "B"}, 2),
            "1 of 2 slots of A, 0 of 2 slots of B, 1 of 0 slots of C");
}

}  // namespace
}  // namespace aliquot::node
