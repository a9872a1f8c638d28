#include "topology/topology_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::topology {
namespace {

using model::HostPath;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view text) {
  const auto paths = parse_topology_conf(text, "t.conf");
  return paths ? "accepted" : paths.error().message;
}

TEST(TopologyConf, ReadsATreeOfSwitches) {
  const auto paths = parse_topology_conf(
      "# three switches\n"
      "SwitchName=s0 Nodes=tux[0-1]\n"
      "switchname=s1 nodes=tux[2-3] LinkSpeed=900\n\n"
      "SwitchName=s2 Switches=s[0-1]  # above\n",
      "t.conf");
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_THAT(*paths, ElementsAre(HostPath{"tux0", {"s2", "s0"}}, HostPath{"tux1", {"s2", "s0"}},
                                  HostPath{"tux2", {"s2", "s1"}}, HostPath{"tux3", {"s2", "s1"}}));
}

TEST(TopologyConf, ReadsBlocksAndTheirLargerGroups) {
  const auto paths = parse_topology_conf(
      "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\n"
      "BlockSizes=2,4\n",
      "t.conf");
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_EQ((*paths)[0], (HostPath{"n1", {"blocks of 4 #0", "b1"}}));
  EXPECT_EQ((*paths)[3], (HostPath{"n4", {"blocks of 4 #0", "b2"}}));
  EXPECT_EQ((*paths)[4], (HostPath{"n5", {"blocks of 4 #1", "b3"}}));
}

TEST(TopologyConf, JoinsContinuedLines) {
  const auto paths = parse_topology_conf("SwitchName=s0 \\\n  Nodes=a,b\n", "t.conf");
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_EQ(paths->size(), 2u);
}

TEST(TopologyConf, NamesTheLineOfEveryFault) {
  EXPECT_THAT(refusal(""), HasSubstr("no SwitchName= or BlockName="));
  EXPECT_THAT(refusal("SwitchName=a\n"), StartsWith("t.conf:1: 'a' needs either"));
  EXPECT_THAT(refusal("\nSwitchName=a Nodes=n Switches=b\n"), StartsWith("t.conf:2: 'a' needs"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n\nSwitchName=a Nodes=m\n"),
              StartsWith("t.conf:2: 'a' is described twice"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n\nSwitchName=b Nodes=n\n"),
              StartsWith("t.conf:2: 'n' is in two places"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n\nBlockName=b Nodes=m\n"), StartsWith("t.conf:2:"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n[3-1]\n"), StartsWith("t.conf:1: list 'n[3-1]'"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n[1-\n"), StartsWith("t.conf:1: list"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n Speed=1\n"), StartsWith("t.conf:1: unknown key"));
  EXPECT_THAT(refusal("SwitchName=a Nodes\n"), StartsWith("t.conf:1: expected KEY=VALUE"));
  EXPECT_THAT(refusal("SwitchName=a Nodes=n Nodes=m\n"), StartsWith("t.conf:1: 'Nodes' is given"));
  EXPECT_THAT(refusal("SwitchName=b Switches=a\n"), StartsWith("t.conf:1: switch 'a' is not"));
  EXPECT_THAT(refusal("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"),
              HasSubstr("is below itself"));
  EXPECT_THAT(refusal("SwitchName=l Nodes=n\nSwitchName=a Switches=l\nSwitchName=b Switches=l\n"),
              StartsWith("t.conf:3: switch 'l' is below 'a' already"));
  EXPECT_THAT(refusal("BlockName=b Nodes=n\nBlockSizes=4,6\n"), StartsWith("t.conf:2: BlockSizes"));
}

TEST(ExpandedHosts, KeepTheWidthOfDigits) {
  EXPECT_THAT(*expanded_hosts("n[08-11],m[1,3]x,q"),
              ElementsAre("n08", "n09", "n10", "n11", "m1x", "m3x", "q"));
  for (const char* bad : {"", "a,,b", "n[", "n]", "n[a-b]", "n[1-2][3-4]", "n[0-999999]"})
    EXPECT_FALSE(expanded_hosts(bad)) << bad;
}

}  // namespace
}  // namespace aliquot::topology
