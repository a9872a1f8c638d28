// A share of a simulated machine as NVML and the driver show it to a program: the real libraries of
// the simulation behind the interposer, a real broker between two tenants.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "broker/broker_fixture.h"
#include "common/unique_fd.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1ull << 30;

// The machine's GPUs as its specification has them.
class SpecProbe final : public broker::GpuProbe {
 public:
  explicit SpecProbe(const simdriver::MachineSpec& spec) : spec_(spec) {}
  Result<std::vector<broker::ProbedGpu>> gpus() override {
    std::vector<broker::ProbedGpu> all;
    for (unsigned i = 0; i < spec_.gpus.size(); ++i) {
      broker::ProbedGpu gpu;
      gpu.uuid = simdriver::gpu_uuid_text(spec_.gpus[i].uuid);
      gpu.bus_id = spec_.gpus[i].pci.text();
      gpu.name = spec_.model_of(i).product;
      gpu.total_bytes = gpu.free_bytes = 80 * kGiB;
      gpu.context_overhead_bytes = spec_.model_of(i).memory.context_bytes;
      all.push_back(gpu);
    }
    return all;
  }

 private:
  const simdriver::MachineSpec& spec_;
};

class SpecProbes final : public broker::ProbeSource {
 public:
  explicit SpecProbes(const simdriver::MachineSpec& spec) : spec_(spec) {}
  Result<std::unique_ptr<broker::GpuProbe>> open(const std::string&) override {
    return std::unique_ptr<broker::GpuProbe>(std::make_unique<SpecProbe>(spec_));
  }

 private:
  const simdriver::MachineSpec& spec_;
};

class ShareOnMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string state = (fs::temp_directory_path() / "aliquot-share-XXXXXX").string();
    ASSERT_NE(mkdtemp(state.data()), nullptr);
    state_ = state;
    setenv("ALIQUOT_STATE_DIR", state_.c_str(), 1);
    const auto directory = simdriver::simulator_directory();
    ASSERT_TRUE(directory) << directory.error().message;
    spec_ = *simdriver::make_machine({.node = "a100x8", .name = "share", .cuda = ""}, *directory);
    const auto machine = simdriver::start_machine(spec_, *directory);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = *machine;
    broker_ = broker::Child([this] {
      SpecProbes probes(spec_);
      MonotonicClock clock;
      broker::BrokerOptions options;
      options.state_directory = state_ / "broker";
      auto opened = broker::Broker::open(options, probes, clock);
      if (!opened) return 1;
      (*opened)->run();
      return 0;
    });
    ASSERT_TRUE(broker::eventually(
        [this] { return broker::Client::connect(state_ / "broker").has_value(); }));
  }
  void TearDown() override {
    broker_.kill_now();
    if (machine_.pid != 0) {
      EXPECT_TRUE(simdriver::stop_machine(machine_.name));
    }
    fs::remove_all(state_);
    unsetenv("ALIQUOT_STATE_DIR");
  }

  broker::LeaseGrant lease_on(const std::vector<std::string>& gpus, std::uint64_t bytes) {
    broker::LeaseRequest request;
    request.driver = "sim:share";
    request.real_libcuda = machine_.library_directory() / "libcuda.so.1";
    request.real_libnvidia_ml = machine_.library_directory() / "libnvidia-ml.so.1";
    for (const std::string& gpu : gpus)
      request.shares.push_back({gpu, {model::MemoryQuantity::Kind::kBytes, bytes}, 0});
    auto granted = broker::Client::connect(state_ / "broker")->create_lease(request);
    EXPECT_TRUE(granted) << granted.error().message;
    return granted ? *granted : broker::LeaseGrant{};
  }
  std::string uuid(unsigned gpu) const { return simdriver::gpu_uuid_text(spec_.gpus[gpu].uuid); }
  std::string bus(unsigned gpu) const { return spec_.gpus[gpu].pci.text(); }
  std::string preload(const broker::LeaseGrant& lease) const {
    return "ALIQUOT_LEASE=" + lease.directory + " LD_PRELOAD=" ALIQUOT_LIBRARY;
  }
  // The library under the names of both real ones, found first; with `too`, preloaded as well.
  std::string in_place(const broker::LeaseGrant& lease, bool too) {
    const fs::path directory = state_ / "in_place";
    fs::create_directories(directory);
    for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
      fs::remove(directory / name);
      fs::create_symlink(ALIQUOT_LIBRARY, directory / name);
    }
    return "ALIQUOT_LEASE=" + lease.directory + " LD_LIBRARY_PATH=" + directory.string() +
           (too ? " LD_PRELOAD=" ALIQUOT_LIBRARY : "");
  }
  // The program's output; GPU 0 plays the GPU of somebody else.
  FILE* start(const std::string& environment, const std::string& words) {
    const std::string command = "env LD_LIBRARY_PATH=" + machine_.library_directory().string() +
                                " " + environment + " " ALIQUOT_NVML_PROGRAM " " + words + " 2>&1";
    return popen(command.c_str(), "r");
  }
  static std::string read_all(FILE* pipe) {
    std::string output;
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;)
      output.append(buffer.data(), n);
    pclose(pipe);
    return output;
  }
  std::string look(const std::string& environment, unsigned mib = 0) {
    return read_all(start(environment, std::to_string(mib) + " " + uuid(0) + " " + bus(0)));
  }

  fs::path state_;
  simdriver::MachineSpec spec_;
  simdriver::RunningMachine machine_;
  broker::Child broker_;
};

TEST_F(ShareOnMachine, NvmlShowsTheLeasedGpusOnly) {
  const auto lease = lease_on({"2", "5"}, 4 * kGiB);
  const std::string seen = look(preload(lease));
  EXPECT_THAT(seen, HasSubstr("nvml init=0 count=0:2"));
  EXPECT_THAT(seen,
              HasSubstr("gpu 0 uuid=" + uuid(2) + " name=NVIDIA A100-SXM4-80GB bus=" + bus(2)));
  EXPECT_THAT(seen, HasSubstr("gpu 1 uuid=" + uuid(5)));
  EXPECT_THAT(seen, HasSubstr("foreign uuid=6 bus=6 index=2"));
  EXPECT_THAT(seen, HasSubstr("pair ancestor=0 p2p=0 nearest=0:1"));
  EXPECT_THAT(seen, HasSubstr("shutdown=0"));
}

TEST_F(ShareOnMachine, NvmlAndTheDriverTellTheSameMemory) {
  const auto lease = lease_on({"2"}, 4 * kGiB);
  const std::uint64_t overhead = spec_.model_of(2).memory.context_bytes;
  const std::string seen = look(preload(lease), 1024);
  const std::uint64_t used = kGiB + overhead;
  const std::string free = std::to_string(4 * kGiB - used);
  EXPECT_THAT(seen, HasSubstr("alloc=0 free=" + free + " total=" + std::to_string(4 * kGiB)));
  EXPECT_THAT(seen, HasSubstr("gpu 0 total=" + std::to_string(4 * kGiB) + " used=" +
                              std::to_string(used) + " free=" + free + " v2=1 power=0 set=4"));
  EXPECT_THAT(seen, HasSubstr("processes=1 self:" + std::to_string(used / kMiB)));
}

TEST_F(ShareOnMachine, AnotherTenantOnTheSameGpuIsNotSeen) {
  const auto other = lease_on({"2"}, 8 * kGiB);
  const auto lease = lease_on({"2"}, 4 * kGiB);
  // It holds its memory until its input ends.
  const std::string input = state_ / "input";
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  UniqueFd writer(open(input.c_str(), O_RDWR | O_CLOEXEC));
  FILE* tenant = start(preload(other), "2048 " + uuid(0) + " " + bus(0) + " wait <" + input);
  std::string its_view;
  std::array<char, 1024> line;
  while (its_view.find("shutdown=") == std::string::npos &&
         fgets(line.data(), line.size(), tenant) != nullptr)
    its_view += line.data();
  EXPECT_THAT(its_view, HasSubstr("processes=1 self:"));

  const std::string seen = look(preload(lease), 256);
  EXPECT_THAT(seen, AllOf(HasSubstr("processes=1 self:"), Not(HasSubstr("other:"))));
  EXPECT_THAT(look("A=b"), HasSubstr("processes=1 other:"));  // the machine itself knows it
  writer.reset();
  read_all(tenant);
}

TEST_F(ShareOnMachine, InPlaceOfBothLibrariesTheViewIsTheSame) {
  const auto lease = lease_on({"2", "5"}, 4 * kGiB);
  const std::string preloaded = look(preload(lease), 1024);
  EXPECT_THAT(preloaded, HasSubstr("cuda init=0 context=0 alloc=0"));
  EXPECT_EQ(look(in_place(lease, false), 1024), preloaded);
  EXPECT_EQ(look(in_place(lease, true), 1024), preloaded);
}

TEST_F(ShareOnMachine, WithoutALeaseThereIsNoGpuAndOneLineSaysWhy) {
  const std::string seen = look("LD_PRELOAD=" ALIQUOT_LIBRARY);
  EXPECT_THAT(seen, HasSubstr("nvml init=0 count=0:0"));
  EXPECT_THAT(seen, HasSubstr("aliquot: this program gets no GPU: it has no lease"));
  EXPECT_THAT(look("ALIQUOT_QUIET=1 LD_PRELOAD=" ALIQUOT_LIBRARY), Not(HasSubstr("aliquot:")));
}

TEST_F(ShareOnMachine, WithoutUsTheProgramSeesTheMachine) {
  EXPECT_THAT(look("A=b"), AllOf(HasSubstr("count=0:8"), HasSubstr("foreign uuid=0 bus=0")));
}

}  // namespace
}  // namespace aliquot
