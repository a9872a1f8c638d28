#include "node/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NodeConfig, YamlIsRead) {
  Config config;
  const Status read = read_config(config,
                                  "# a node\nslots_per_gpu: 8\nhealth_check_interval: 5m\n"
                                  "allocator-strategy: spread\nkubelet: no\nsim: a100\n",
                                  "aliquotd.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(config.slots_per_gpu, 8u);
  EXPECT_EQ(config.health_check_interval, 300 * kSecond);
  EXPECT_EQ(config.allocator_strategy, SlotStrategy::kSpread);
  EXPECT_EQ(config.sim, "a100");
}

TEST(NodeConfig, TheKeysPeopleKnowAreReadFromAnIniSection) {
  Config config;
  const Status read = read_config(config,
                                  "; as it was\n[DevicePlugin]\nhealth_check_interval=60s\n"
                                  "allocator_strategy = binpack\ndefault_memory_unit=1GB\n",
                                  "device_plugin.conf");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(config.default_memory_unit, 1'000'000'000u);
  EXPECT_EQ(config.health_check_interval, 60 * kSecond);
}

TEST(NodeConfig, WhatCannotBeMeantIsNamedWithItsPlace) {
  Config config;
  EXPECT_THAT(read_config(config, "slotz: 8\n", "f.yaml").error().message,
              HasSubstr("f.yaml: there is no key \"slotz\"; there are: state_directory"));
  EXPECT_THAT(read_config(config, "slots_per_gpu: 0\n", "f.yaml").error().message,
              HasSubstr("slots_per_gpu \"0\": expected 1 to 1000"));
  EXPECT_THAT(read_config(config, "[Other]\n", "f.ini").error().message,
              HasSubstr("f.ini:1: section [Other]"));
  EXPECT_THAT(read_config(config, "[DevicePlugin]\n\nnonsense\n", "f.ini").error().message,
              HasSubstr("f.ini:3: expected KEY = VALUE"));
  for (const char* text : {"health_check_interval: 60 parsecs\n", "health_check_interval: 0s\n",
                           "default_memory_unit: 25%\n", "state_directory: here\n", "- a\n"})
    EXPECT_FALSE(read_config(config, text, "f.yaml")) << text;
  EXPECT_EQ(config, Config());
}

TEST(NodeConfig, WhomToObserveAndWhatToDoWithGpusAndProcessesIsRead) {
  Config config;
  const Status read = read_config(config,
                                  "enforce: on\nobserve: lab, default/train\non_unleased: end\n"
                                  "health_quiet: 10m\nunhealthy_taint: NoSchedule\n"
                                  "nvidia_replicas: 4\n",
                                  "f.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(config.observe.covers("lab", "any"));
  EXPECT_TRUE(config.observe.covers("default", "train"));
  EXPECT_FALSE(config.observe.covers("default", "trainer"));
  EXPECT_EQ(config.on_unleased, OnUnleased::kEnd);
  EXPECT_EQ(config.health_quiet, 600 * kSecond);
  EXPECT_EQ(config.unhealthy_taint, "NoSchedule");
  EXPECT_EQ(config.nvidia_replicas, 4u);
  ASSERT_TRUE(read_config(config, "enforce: observe\n", "f.yaml"));
  EXPECT_TRUE(config.observe.covers("default", "trainer"));
  for (const char* text : {"observe: lab,,x\n", "observe: a/b/c\n", "observe: /x\n",
                           "unhealthy_taint: Never\n", "enforce: off\n", "nvidia_replicas: 101\n"})
    EXPECT_FALSE(read_config(config, text, "f.yaml")) << text;
}

TEST(NodeConfig, OfAReloadOnlySomeKeysWaitForARestart) {
  Config before, after;
  after.health_check_interval = 5 * kSecond;
  after.health_quiet = kSecond;
  after.observe.all = true;
  EXPECT_TRUE(keys_for_restart(before, after).empty());
  after.slots_per_gpu = 4;
  after.sim = "x";
  EXPECT_THAT(keys_for_restart(before, after), ElementsAre("sim", "slots_per_gpu"));
}

TEST(NodeConfig, EveryKeyHasHelpAndItsDefaultCanBeSaid) {
  for (const ConfigKey& key : config_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(key.value.empty()) << key.name;
  }
}

}  // namespace
}  // namespace aliquot::node
