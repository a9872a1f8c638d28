// The daemon before a driver that does not answer: shell scripts stand in for aliquot-probe.
#include "node/daemon.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <limits>

#include "common/files.h"
#include "format/json.h"
#include "node/testing/fake_kubelet.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHangs = "#!/bin/bash\nexec sleep 600\n";

struct DaemonTest : testing::Test {
  DaemonTest() {
    std::string name = testing::TempDir() + "/daemon-XXXXXX";
    root = mkdtemp(name.data());
    kubelet = std::make_unique<FakeKubelet>(root / "kubelet");
    put("libaliquot.so", "a library");
    put("libnvidia-ml.so.1", "another");
    const inventory::Driver driver{"sim:m", root, root / "libcuda.so.1",
                                   root / "libnvidia-ml.so.1"};
    inventory::Inventory found;
    found.driver = driver.name;
    found.simulated = true;
    found.gpus.emplace_back().identity.uuid = "GPU-a";
    found.topology = model::NodeTopology({{"GPU0", "GPU-a", "", std::nullopt}}, {});
    put("cache/driver.json", inventory::driver_text(driver));
    put("cache/inventory.json", inventory::to_json(found).dump());
  }
  ~DaemonTest() override {
    kubelet.reset();
    fs::remove_all(root);
  }

  void put(const fs::path& path, const std::string& text, unsigned mode = 0644) const {
    EXPECT_TRUE(make_directories((root / path).parent_path(), 0755));
    EXPECT_TRUE(write_file_atomically(root / path, text, mode));
  }

  Daemon::Options options(const std::string& cache) {
    Daemon::Options options;
    options.config.sim = "m";
    options.config.state_directory = root / "state";
    options.config.cache_directory = root / cache;
    options.config.kubelet = UseKubelet::kYes;
    options.config.kubelet_directory = root / "kubelet";
    options.config.kubelet_url = "http://127.0.0.1:9";
    options.config.cdi_directory = root / "cdi";
    options.config.metrics_address.clear();
    options.installation = {root / "probe", root / "libaliquot.so", {}};
    options.machines = root;
    return options;
  }

  bool is_offered() const {
    return kubelet->wait_devices("aliquot.dev/gpu", [](const auto& d) { return d.size() == 16; });
  }

  fs::path root;
  MonotonicClock clock;
  std::unique_ptr<FakeKubelet> kubelet;
};

// A busy machine can only add to what it takes: the fastest of three tells whether anything waits.
TEST_F(DaemonTest, ARestartedOneIsRegisteredBeforeTheDriverAnswers) {
  put("probe", kHangs, 0755);
  constexpr Nanoseconds kLimit = ALIQUOT_REGISTERED_WITHIN_S * kSecond;
  Nanoseconds fastest = std::numeric_limits<Nanoseconds>::max();
  for (int i = 0; i < 3 && fastest >= kLimit; ++i) {
    ASSERT_TRUE(kubelet->wait_devices("aliquot.dev/gpu", [](const auto& d) { return d.empty(); }));
    const Nanoseconds begun = clock.now();
    const auto daemon = Daemon::open(options("cache"), clock);
    ASSERT_TRUE(daemon) << daemon.error().message;
    EXPECT_TRUE(is_offered());
    fastest = std::min(fastest, clock.now() - begun);
  }
  EXPECT_LT(fastest, kLimit);
}

TEST_F(DaemonTest, AFirstStartAsksUntilTheDriverAnswers) {
  const std::string asked = (root / "asked").string();
  put("probe",
      "#!/bin/bash\n[ $1 != gpu ] || exec sleep 600\necho >>" + asked + "\n[ $(wc -l <" + asked +
          ") -gt 2 ] || exec sleep 600\ncat " + (root / "cache").string() + "/$1.json\n",
      0755);
  auto wanted = options("another_cache");
  wanted.driver_patience_ms = 2000;
  const auto daemon = Daemon::open(wanted, clock);
  ASSERT_TRUE(daemon) << daemon.error().message;
  EXPECT_TRUE(is_offered());
}

TEST_F(DaemonTest, AFirstStartThatWaitsEndsWhenItIsTold) {
  put("probe", kHangs, 0755);
  const std::atomic<bool> ending = true;
  auto wanted = options("another_cache");
  wanted.give_up = &ending;
  EXPECT_EQ(Daemon::open(wanted, clock).error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace aliquot::node
