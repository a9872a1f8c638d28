#include "broker/compute.h"

#include <algorithm>
#include <set>

#include "broker/codec.h"
#include "common/files.h"

namespace aliquot::broker {
namespace {

constexpr std::string_view kFileMagic = "ALGPUS01";
constexpr std::size_t kMostFileBytes = 1u << 20;

std::string key_of(const std::string& driver, const std::string& uuid) {
  return driver + ' ' + uuid;
}

Status read_settings(const std::filesystem::path& file, std::vector<GpuSettings>& settings) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return {};
  const auto text = read_file(file, kMostFileBytes);
  if (!text) return text.error();
  if (text->starts_with(kFileMagic) && decode(text->substr(kFileMagic.size()), settings)) return {};
  return Error{Errc::kInvalid, "read " + file.string() +
                                   ": damaged or of another version; remove it and set the GPUs' "
                                   "policies again (aliquot gpu set)"};
}

}  // namespace

gate::GpuTerms terms_of(const GpuSettings& settings) {
  return {.policy = static_cast<gate::Policy>(settings.policy),
          .max_inst = settings.max_inst,
          .prio_ratio = settings.prio_ratio,
          .release = static_cast<Nanoseconds>(settings.release_ns),
          .release_auto = settings.release_auto};
}

Compute::Compute(std::filesystem::path file, log::Log log)
    : file_(std::move(file)), log_(std::move(log)) {
  std::vector<GpuSettings> settings;
  if (const Status read = read_settings(file_, settings); !read) log_.error(read.error().message);
  for (const GpuSettings& gpu : settings)
    if (gate::check(terms_of(gpu))) settings_[key_of(gpu.driver, gpu.uuid)] = gpu;
}

GpuSettings Compute::settings(const std::string& driver, const std::string& uuid) const {
  const auto known = settings_.find(key_of(driver, uuid));
  if (known != settings_.end()) return known->second;
  GpuSettings settings;
  settings.driver = driver;
  settings.uuid = uuid;
  return settings;
}

Status Compute::set(const GpuSettings& settings) {
  if (const Status good = gate::check(terms_of(settings)); !good) return good;
  const std::string key = key_of(settings.driver, settings.uuid);
  auto changed = settings_;
  changed[key] = settings;
  std::vector<GpuSettings> rows;
  for (const auto& [name, row] : changed) rows.push_back(row);
  Status written = write_file_atomically(file_, std::string(kFileMagic) + encoded(rows), 0600);
  if (!written) return written;
  settings_ = std::move(changed);
  const auto gpu = gpus_.find(key);
  if (gpu == gpus_.end()) return {};
  for (const auto& [lease, seats] : seats_)
    for (unsigned i = 0; i < seats.size(); ++i)
      if (seats[i].gpu == &gpu->second) tell_policy(*lease, i, settings.policy);
  gpu->second.thread->with([&](ComputeGpu& compute, Nanoseconds now) {
    compute.set_gpu_terms(now, in_machine_time(terms_of(settings), gpu->second.slowness));
  });
  return {};
}

void Compute::tell_policy(const Lease& lease, unsigned gpu, wire::Policy policy) {
  const auto number = static_cast<std::uint32_t>(policy);
  if (lease.files().grant().gpu[gpu].policy.exchange(number) == number) return;
  lease.files().grant().generation.fetch_add(1, std::memory_order_release);
}

// The settings' times are the machine's.
gate::GpuTerms Compute::in_machine_time(gate::GpuTerms terms, double slowness) {
  terms.release = static_cast<Nanoseconds>(static_cast<double>(terms.release) * slowness);
  return terms;
}

Compute::Gpu& Compute::gpu_of(const Lease& lease, unsigned index) {
  const std::string uuid = lease.uuid(index);
  Gpu& gpu = gpus_[key_of(lease.driver(), uuid)];
  if (gpu.thread) return gpu;
  const std::uint64_t scale = lease.files().grant().gpu[index].time_scale_micro;
  gpu.slowness = scale == 0 ? 1.0 : 1e6 / static_cast<double>(scale);
  const auto terms = in_machine_time(terms_of(settings(lease.driver(), uuid)), gpu.slowness);
  gpu.thread = std::make_unique<ComputeThread>(std::make_unique<ComputeGpu>(terms, gpu.slowness));
  return gpu;
}

void Compute::enter(Lease& lease) {
  std::vector<Seat>& seats = seats_[&lease];
  const LeaseFiles& files = lease.files();
  for (unsigned i = 0; i < lease.gpus(); ++i) {
    Gpu& gpu = gpu_of(lease, i);
    ++gpu.leases;
    tell_policy(lease, i, settings(lease.driver(), lease.uuid(i)).policy);
    Seat seat;
    seat.gpu = &gpu;
    seat.tenant = gpu.thread->with([&](ComputeGpu& compute, Nanoseconds now) {
      seat.looked_at = now;
      const std::size_t tenant = compute.add(now, files.grant().gpu[i], files.ledger(), i);
      if ((files.table().offender_gpus >> i & 1) != 0) compute.mark_offender(tenant);
      return tenant;
    });
    seats.push_back(seat);
  }
  lease.follow_slots([&seats](unsigned slot, bool taken) {
    for (const Seat& seat : seats)
      seat.gpu->thread->with([&](ComputeGpu& compute, Nanoseconds now) {
        if (taken) {
          compute.take_slot(now, seat.tenant, slot);
        } else {
          compute.leave_slot(now, seat.tenant, slot);
        }
      });
  });
}

void Compute::leave(Lease& lease) {
  lease.follow_slots(nullptr);
  const auto seats = seats_.find(&lease);
  if (seats == seats_.end()) return;
  for (const Seat& seat : seats->second) {
    seat.gpu->thread->with(
        [&](ComputeGpu& compute, Nanoseconds now) { compute.remove(now, seat.tenant); });
    --seat.gpu->leases;
  }
  seats_.erase(seats);
  std::erase_if(gpus_, [](const auto& gpu) { return gpu.second.leases == 0; });
}

void Compute::read_terms(const Lease& lease, unsigned gpu) {
  const auto seats = seats_.find(&lease);
  if (seats == seats_.end()) return;
  const Seat& seat = seats->second[gpu];
  seat.gpu->thread->with(
      [&](ComputeGpu& compute, Nanoseconds now) { compute.read_terms(now, seat.tenant); });
}

// Once for each GPU, however many leases are then reported.
void Compute::charge(const Lease* lease) {
  std::set<Gpu*> wanted;
  for (const auto& [one, seats] : seats_)
    if (lease == nullptr || one == lease)
      for (const Seat& seat : seats) wanted.insert(seat.gpu);
  for (Gpu* gpu : wanted) gpu->thread->step([](const ComputeGpu&, Nanoseconds) {});
}

void Compute::add_compute(const Lease& lease, LeaseRow& row) const {
  const Nanoseconds now = MonotonicClock().now();
  const auto seats = seats_.find(&lease);
  if (seats == seats_.end()) return;
  for (unsigned i = 0; i < row.gpus.size() && i < seats->second.size(); ++i) {
    const Seat& seat = seats->second[i];
    ComputeRow& shown = row.gpus[i].compute;
    seat.gpu->thread->peek([&](const ComputeGpu& compute) {
      const ComputeGpu::Look look = compute.look(now, seat.tenant);
      shown.state = static_cast<ComputeState>(look.standing);
      shown.share = static_cast<std::uint32_t>(look.share.percent * 100);
      shown.banned_for_ns =
          static_cast<std::uint64_t>(std::max<Nanoseconds>(0, look.banned_until - now));
      shown.charged_ns = static_cast<std::uint64_t>(look.account.charged_ns);
      shown.forgiven_ns = static_cast<std::uint64_t>(look.account.forgiven_ns);
      shown.windows = look.account.windows;
      shown.unused_grants = look.account.unused_grants;
      shown.undrained_turns = look.account.undrained_turns;
      shown.longest_kernel_ns = static_cast<std::uint64_t>(look.longest_kernel);
      shown.false_reports = look.account.false_reports;
      shown.bypasses = look.bypasses;
      shown.bypass_ns = static_cast<std::uint64_t>(look.bypass_ns);
      shown.offender = look.offender;
    });
    shown.busy = seat.busy;
  }
}

// All seats of a GPU in one go.
void Compute::seldom() {
  for (auto& [key, gpu] : gpus_) {
    std::vector<Seat*> taken;
    for (auto& [lease, seats] : seats_)
      for (Seat& seat : seats)
        if (seat.gpu == &gpu) taken.push_back(&seat);
    gpu.thread->step([&](const ComputeGpu& compute, Nanoseconds now) {
      for (Seat* seat : taken) seat->look(now, compute.look(now, seat->tenant).account.charged_ns);
    });
  }
}

void Compute::Seat::look(Nanoseconds now, Nanoseconds charged) {
  const auto wall = static_cast<double>(now - looked_at);
  const auto used = static_cast<double>(charged - charged_ns);
  busy = wall > 0 ? static_cast<std::uint32_t>(std::clamp(used / wall, 0.0, 1.0) * 10'000) : 0;
  looked_at = now;
  charged_ns = charged;
}

}  // namespace aliquot::broker
