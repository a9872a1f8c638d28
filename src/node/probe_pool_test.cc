// The pool against stand-ins for aliquot-probe: shell scripts that answer, hang or end.
#include "node/probe_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "common/files.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

GpuReading reading_with(std::uint64_t free_bytes) {
  GpuReading reading;
  reading.state.memory = {1000, 10, 90, free_bytes};
  reading.state.processes.push_back({42, 77, inventory::ProcessKind::kCompute});
  reading.state.gpu_percent = 5;
  reading.health.nvlinks_up = {true, false};
  reading.health.uncorrected = 3;
  return reading;
}

TEST(ProbeLine, AReadingReadsBackWhole) {
  ProbeLine line;
  line.reading = reading_with(900);
  line.error = "half of it";
  const auto read = parse_probe_line(probe_line_text(line));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->reading->state, line.reading->state);
  EXPECT_EQ(read->reading->health.nvlinks_up, line.reading->health.nvlinks_up);
  EXPECT_EQ(read->reading->health.uncorrected, 3u);
  EXPECT_EQ(read->reading->health.temperature_c, std::nullopt);  // not told is not zero
  EXPECT_EQ(read->error, "half of it");
}

TEST(ProbeLine, WhatIsHeldReadsBackWhole) {
  ProbeLine line;
  line.held = inventory::NvmlHeld{{1000, 10, 90, 900}, {{42, 77, inventory::ProcessKind::kMps}}};
  const auto read = parse_probe_line(probe_line_text(line));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->held, line.held);
  EXPECT_FALSE(read->reading);
}

TEST(ProbeLine, JunkIsAnErrorAndAnXidComesAlone) {
  EXPECT_FALSE(parse_probe_line("junk"));
  EXPECT_FALSE(parse_probe_line(R"({"reading": {}})"));
  ProbeLine xid;
  xid.xid = 79;
  const auto read = parse_probe_line(probe_line_text(xid));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->xid, 79u);
  EXPECT_FALSE(read->reading);
}

TEST(ProbeLine, WhoUsedTheGpuReadsBackWhole) {
  ProbeLine line;
  line.use = {{.pid = 42, .at_us = 1'700'000'000'000'000, .percent = 63}};
  const auto read = parse_probe_line(probe_line_text(line));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->use, line.use);
  EXPECT_FALSE(read->reading);
}

class Heard final : public ProbeListener {
 public:
  void read(const std::string& uuid, const GpuReading& /*reading*/) override { reads += uuid; }
  void silent(const std::string& uuid) override { silences += uuid; }
  void xid(const std::string& uuid, unsigned xid) override { xids += uuid + std::to_string(xid); }
  std::string reads, silences, xids;
};

struct ProbePoolTest : testing::Test {
  ProbePoolTest() {
    std::string name = testing::TempDir() + "/probes-XXXXXX";
    root = mkdtemp(name.data());
    ProbeLine line, held, used;
    line.reading = reading_with(900);
    held.held =
        inventory::NvmlHeld{{1000, 10, 190, 800}, {{43, 78, inventory::ProcessKind::kCompute}}};
    used.use = {{.pid = 42, .at_us = 1'000'000, .percent = 5},
                {.pid = 42, .at_us = 7'000'000, .percent = 63}};
    // By the GPU's name: h hangs, e ends at once, x tells of an XID and u of its use first, m has
    // taken more since, and s is slow to say so.
    EXPECT_TRUE(write_file_atomically(
        root / "probe",
        "#!/bin/bash\ncase $3 in\nh) exec sleep 60;;\ne) exit "
        "1;;\nx) echo '{\"xid\": 79}';;\nu) echo '" +
            probe_line_text(used) +
            "';;\nesac\n"
            "while IFS= read -r -N 1 q; do case $q$3 in mm|ms) [ $3 = m ] || sleep 0.08; echo '" +
            probe_line_text(held) + "';; *) echo '" + probe_line_text(line) + "';; esac; done\n",
        0755));
  }
  ~ProbePoolTest() override { fs::remove_all(root); }

  std::unique_ptr<ProbePool> pool(const std::vector<std::string>& uuids) {
    std::vector<KnownGpu> gpus;
    for (const std::string& uuid : uuids) {
      KnownGpu gpu;
      gpu.uuid = uuid;
      gpu.total_bytes = 1000;
      gpus.push_back(gpu);
    }
    ProbePool::Options options;
    options.program = root / "probe";
    options.libnvidia_ml = "/none";
    return std::make_unique<ProbePool>(options, gpus, loop, &heard);
  }
  // Real milliseconds; the clock of the pool stands still.
  bool turn_until(const std::function<bool()>& test) {
    for (int i = 0; i < 1000; ++i) {
      if (test()) return true;
      loop.turn(10);
    }
    return false;
  }
  void pass(Nanoseconds time) {
    for (Nanoseconds passed = 0; passed < time; passed += kSecond) {
      clock.advance(kSecond);
      loop.turn(0);
    }
  }

  fs::path root;
  SteppedClock clock;
  broker::Loop loop{clock};
  Heard heard;
};

TEST_F(ProbePoolTest, EveryGpuIsMeasuredInItsPlace) {
  clock.advance(kSecond);
  const auto probes = pool({"a", "b"});
  ASSERT_TRUE(turn_until([&] { return heard.reads.size() >= 2; }));
  const auto rows = probes->measure();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].uuid, "a");
  EXPECT_EQ(rows[1].total_bytes, 990u);  // without the driver's own part
  EXPECT_EQ(rows[1].free_bytes, 900u);
  EXPECT_EQ(rows[1].processes.at(0).pid, 42);
}

TEST_F(ProbePoolTest, WhatIsHeldIsYoungerThanTheReadingAndDoesNotMakeItYoung) {
  clock.advance(kSecond);
  const auto probes = pool({"m"});
  ASSERT_TRUE(turn_until([&] { return !heard.reads.empty(); }));
  EXPECT_EQ(probes->measure().at(0).free_bytes, 800u);
  EXPECT_EQ(probes->measure().at(0).processes.at(0).pid, 43);
  pass(kSecond);
  const LatestReading latest = probes->latest().at(0);
  EXPECT_EQ(latest.reading->state.memory.free_bytes, 800u);
  EXPECT_EQ(latest.reading->state.gpu_percent, 5u);
  EXPECT_EQ(latest.read_at, kSecond);
}

TEST_F(ProbePoolTest, WhoeverMeasuresAllTheTimeKeepsNoReadingFromBeingAsked) {
  clock.advance(kSecond);
  const auto probes = pool({"s"});
  ASSERT_TRUE(turn_until([&] { return !heard.reads.empty(); }));
  for (int second = 0; second < 20; ++second) {
    static_cast<void>(probes->measure());  // its answer comes after the tick
    pass(kSecond);
    loop.turn(100);
  }
  EXPECT_GE(heard.reads.size(), 4u);  // every 5 s
}

TEST_F(ProbePoolTest, AGpuThatHangsHasNoRoomAndTheOthersAreServed) {
  clock.advance(kSecond);
  const auto probes = pool({"h", "a"});
  ASSERT_TRUE(turn_until([&] { return heard.reads == "a"; }));
  pass(6 * kSecond);
  EXPECT_EQ(heard.silences, "h");
  ASSERT_TRUE(turn_until([&] { return heard.reads.size() >= 2; }));
  const auto rows = probes->measure();
  EXPECT_EQ(rows[0].free_bytes, 0u);
  EXPECT_EQ(rows[0].total_bytes, 1000u);
  EXPECT_EQ(rows[0].trouble, "NVML has not answered about it yet");
  EXPECT_EQ(rows[1].trouble, "");
  EXPECT_EQ(rows[1].free_bytes, 900u);
  pass(40 * kSecond);  // killed, and another one started
  EXPECT_GE(probes->latest().at(0).restarts, 1u);
}

TEST_F(ProbePoolTest, AProbeThatEndsIsStartedAgainWithGrowingPauses) {
  clock.advance(kSecond);
  const auto probes = pool({"e"});
  for (int i = 0; i < 60; ++i) {
    pass(kSecond);
    loop.turn(5);
  }
  EXPECT_GE(probes->latest().at(0).restarts, 3u);
  EXPECT_LE(probes->latest().at(0).restarts, 8u);
}

TEST_F(ProbePoolTest, AnXidIsToldAtOnce) {
  clock.advance(kSecond);
  const auto probes = pool({"x"});
  EXPECT_TRUE(turn_until([&] { return heard.xids == "x79"; }));
}

TEST_F(ProbePoolTest, WhatAGpuWasUsedForIsKnownWithoutAsking) {
  clock.advance(kSecond);
  const auto probes = pool({"a", "u"});
  ASSERT_TRUE(turn_until([&] { return heard.reads.find('u') != std::string::npos; }));
  const auto use = probes->use(1, 0);
  ASSERT_EQ(use.size(), 1u) << "the older sample is of no use any more";
  EXPECT_EQ(use[0].pid, 42);
  EXPECT_EQ(use[0].at_us, 7'000'000u);
  EXPECT_EQ(use[0].percent, 63);
  EXPECT_TRUE(probes->use(1, use[0].at_us).empty());
  EXPECT_TRUE(probes->use(0, 0).empty());
  EXPECT_TRUE(probes->use(2, 0).empty());
}

TEST_F(ProbePoolTest, AnotherInventoryKeepsTheProbesOfGpusThatStay) {
  clock.advance(kSecond);
  const auto probes = pool({"a", "b"});
  ASSERT_TRUE(turn_until([&] { return heard.reads.size() >= 2; }));
  KnownGpu kept, added;
  kept.uuid = "b";
  added.uuid = "c";
  probes->set_gpus({kept, added});
  const auto rows = probes->measure();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].uuid, "b");
  EXPECT_EQ(rows[0].free_bytes, 900u);  // it has answered before
  EXPECT_TRUE(turn_until([&] { return heard.reads.find('c') != std::string::npos; }));
}

}  // namespace
}  // namespace aliquot::node
