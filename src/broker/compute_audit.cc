// Compute's audit: the driver's utilisation of processes against what their windows allowed.
#include <algorithm>
#include <map>

#include "broker/compute.h"

namespace aliquot::broker {
namespace {

// Before so many periods were seen the driver's sample period is not known.
constexpr unsigned kPeriodsToLearn = 3;
constexpr double kLeastPeriodUs = 20'000;
constexpr double kMostPeriodUs = 2'000'000;
// A driver tells whole percents of each process.
constexpr double kRounding = 0.5;
// A process that never attached has no window: this much of it is a finding.
constexpr double kStrangerPercent = 5;
constexpr Nanoseconds kBan = 1 * kSecond;

}  // namespace

std::vector<Compute::Question> Compute::questions() const {
  std::map<const Gpu*, Question> asked;
  for (const auto& [lease, seats] : seats_)
    for (unsigned i = 0; i < seats.size(); ++i) {
      const Seat& seat = seats[i];
      const bool used = seat.gpu->thread->peek(
          [&](const ComputeGpu& gpu) { return gpu.has_processes(seat.tenant); });
      if (used)
        asked[seat.gpu] = {lease->driver(), lease->gpu_index(i), lease->uuid(i), seat.gpu->last_us};
    }
  std::vector<Question> questions;
  for (auto& [gpu, question] : asked) questions.push_back(std::move(question));
  return questions;
}

std::vector<Compute::Offence> Compute::judge(const Question& question,
                                             const std::vector<ProbedUse>& uses,
                                             std::uint64_t now_us) {
  Gpu* gpu = gpu_called(question.driver, question.uuid);
  if (gpu == nullptr || uses.empty()) return {};
  const std::uint64_t newest = std::ranges::max_element(uses, {}, &ProbedUse::at_us)->at_us;
  if (gpu->last_us != 0 && newest > gpu->last_us) {
    const std::uint64_t between = newest - gpu->last_us;
    const auto least = static_cast<std::uint64_t>(kLeastPeriodUs * gpu->slowness);
    const auto most = static_cast<std::uint64_t>(kMostPeriodUs * gpu->slowness);
    const std::uint64_t known = gpu->period_us == 0 ? most : gpu->period_us;
    gpu->period_us = std::max(least, std::min(between, known));
    ++gpu->periods_seen;
  }
  gpu->last_us = std::max(gpu->last_us, newest);
  if (gpu->periods_seen < kPeriodsToLearn) return {};
  std::vector<Offence> offences;
  for (auto& [lease, seats] : seats_)
    for (unsigned i = 0; i < seats.size(); ++i) {
      if (seats[i].gpu != gpu) continue;
      if (auto found = judge_seat(*lease, i, uses, now_us); found) offences.push_back(*found);
    }
  return offences;
}

std::optional<Compute::Offence> Compute::judge_seat(const Lease& lease, unsigned index,
                                                    const std::vector<ProbedUse>& uses,
                                                    std::uint64_t now_us) {
  std::vector<std::int32_t> pids;
  for (const ProbedUse& use : uses) pids.push_back(use.pid);
  const std::vector<std::int32_t> strangers = lease.strangers_of_run(pids);
  std::map<std::uint64_t, double> percent;  // by the end of the period
  double stranger_percent = 0;
  for (const ProbedUse& use : uses) {
    if (std::ranges::find(strangers, use.pid) != strangers.end()) {
      stranger_percent += use.percent;
    } else if (lease.has_process(use.pid)) {
      percent[use.at_us] += std::max(0.0, use.percent - kRounding);
    }
  }
  const Seat& seat = seats_.at(&lease)[index];
  const Gpu& gpu = *seat.gpu;
  const GpuSettings shared = settings(lease.driver(), lease.uuid(index));
  const auto period = static_cast<Nanoseconds>(gpu.period_us) * 1000;
  bool offender = false, known = false;
  gpu.thread->with([&](ComputeGpu& compute, Nanoseconds now) {
    known = compute.look(now, seat.tenant).offender;
    for (const auto& [at_us, used] : percent) {
      const auto ago = static_cast<Nanoseconds>(now_us > at_us ? now_us - at_us : 0) * 1000;
      offender |= compute.judge(seat.tenant, now - ago, period, used).offender;
    }
    if (stranger_percent >= kStrangerPercent) {
      compute.add_bypass(seat.tenant, static_cast<Nanoseconds>(static_cast<double>(period) *
                                                               stranger_percent / 100));
      offender = true;
    }
    if (offender && shared.on_bypass == OnBypass::kBan)
      compute.ban(now, seat.tenant,
                  static_cast<Nanoseconds>(static_cast<double>(kBan) * gpu.slowness));
  });
  if (!offender) return std::nullopt;
  lease.files().table().offender_gpus |= 1ull << index;
  return Offence{&lease, index, shared.on_bypass, !known};
}

Compute::Gpu* Compute::gpu_called(const std::string& driver, const std::string& uuid) {
  const auto at = gpus_.find(driver + ' ' + uuid);
  return at == gpus_.end() ? nullptr : &at->second;
}

}  // namespace aliquot::broker
