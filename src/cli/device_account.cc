#include "cli/device_account.h"

#include <algorithm>
#include <ctime>

namespace aliquot::cli {
namespace {

constexpr Nanoseconds kLook = 50 * kMillisecond;
// Until a process has a second sample to tell the period by.
constexpr std::uint64_t kSamplePeriodUs = 1'000'000 / 6;

void sleep_for(Nanoseconds time) {
  const timespec span{time / kSecond, time % kSecond};
  nanosleep(&span, nullptr);
}

class SimulatedAccount final : public DeviceAccount {
 public:
  SimulatedAccount(simdriver::RunningMachine machine, unsigned gpu)
      : machine_(std::move(machine)), gpu_(gpu) {}
  Result<simdriver::DeviceUse> read() override { return simdriver::device_use(machine_, gpu_); }
  Status pass(Nanoseconds time) override {
    sleep_for(time);
    return {};
  }

 private:
  simdriver::RunningMachine machine_;
  unsigned gpu_;
};

// A SampledAccount with the library that it asks.
class RealAccount final : public DeviceAccount {
 public:
  RealAccount(std::unique_ptr<inventory::Nvml> nvml, unsigned gpu)
      : nvml_(std::move(nvml)), account_(*nvml_, clock_, gpu) {}
  Result<simdriver::DeviceUse> read() override { return account_.read(); }
  Status pass(Nanoseconds time) override { return account_.pass(time); }

 private:
  MonotonicClock clock_;
  std::unique_ptr<inventory::Nvml> nvml_;
  SampledAccount account_;
};

}  // namespace

Result<std::unique_ptr<DeviceAccount>> account_of(const inventory::Driver& driver, unsigned gpu) {
  if (driver.simulated()) {
    simdriver::RunningMachine machine;
    machine.name = driver.machine_directory.filename();
    machine.directory = driver.machine_directory;
    return std::unique_ptr<DeviceAccount>(
        std::make_unique<SimulatedAccount>(std::move(machine), gpu));
  }
  auto nvml = inventory::open_nvml(driver.libnvidia_ml);
  if (!nvml) return nvml.error();
  return std::unique_ptr<DeviceAccount>(std::make_unique<RealAccount>(std::move(*nvml), gpu));
}

Result<simdriver::DeviceUse> SampledAccount::read() {
  const auto samples = nvml_.use(gpu_, seen_us_);
  if (!samples) return samples.error();
  for (const inventory::NvmlUse& sample : *samples) {
    std::uint64_t& newest = newest_us_[sample.pid];
    if (sample.at_us <= newest) continue;
    const std::uint64_t period =
        newest != 0 ? std::min(sample.at_us - newest, 2 * kSamplePeriodUs) : kSamplePeriodUs;
    newest = sample.at_us;
    const auto used = static_cast<Nanoseconds>(period * 10 * sample.percent);
    sum_.of[sample.pid] += used;
    sum_.busy += used;
    seen_us_ = std::max(seen_us_, sample.at_us - 1);
  }
  sum_.now = clock_.now();
  return sum_;
}

Status SampledAccount::pass(Nanoseconds time) {
  const Nanoseconds end = clock_.now() + time;
  for (Nanoseconds left = time; left > 0; left = end - clock_.now()) {
    sleep_for(std::min(left, kLook));
    if (const auto read_now = read(); !read_now) return read_now.error();
  }
  return {};
}

}  // namespace aliquot::cli
