// DeviceAccount: how long a GPU worked for whom, as the device itself tells: exactly on a simulated
// machine, by the driver's utilisation samples (whole percents of a sixth of a second) on a real
// one. What shares are held against, since no counter of the gate can vouch for the gate. One
// thread.
#pragma once

#include <memory>

#include "common/clock.h"
#include "inventory/driver_choice.h"
#include "inventory/nvml.h"
#include "simdriver/device_use.h"

namespace aliquot::cli {

class DeviceAccount {
 public:
  virtual ~DeviceAccount() = default;
  // Processes by their pid in this namespace; times grow from one reading to the next.
  virtual Result<simdriver::DeviceUse> read() = 0;
  // Sleeps; a real driver's samples are collected meanwhile.
  virtual Status pass(Nanoseconds time) = 0;
};

Result<std::unique_ptr<DeviceAccount>> account_of(const inventory::Driver& driver, unsigned gpu);

// The samples of one GPU, summed up. `nvml` and `clock` are borrowed.
class SampledAccount final : public DeviceAccount {
 public:
  SampledAccount(inventory::Nvml& nvml, const Clock& clock, unsigned gpu)
      : nvml_(nvml), clock_(clock), gpu_(gpu) {}
  Result<simdriver::DeviceUse> read() override;
  Status pass(Nanoseconds time) override;

 private:
  inventory::Nvml& nvml_;
  const Clock& clock_;
  unsigned gpu_;
  std::map<std::int32_t, std::uint64_t> newest_us_;  // by process
  std::uint64_t seen_us_ = 0;
  simdriver::DeviceUse sum_;
};

}  // namespace aliquot::cli
