#include "node/usage_watch.h"

#include <cstdio>
#include <fstream>
#include <system_error>

#include "common/files.h"
#include "node/seconds.h"

namespace aliquot::node {
namespace {

constexpr Nanoseconds kLookEvery = 5 * kSecond;
constexpr std::size_t kMostLeases = 10'000;
constexpr std::size_t kLargestFile = 16u << 20;

std::vector<UsageMeter::Share> shares_of(const std::vector<broker::LeaseRow>& leases) {
  std::vector<UsageMeter::Share> shares;
  for (const broker::LeaseRow& lease : leases)
    for (const broker::UsageRow& usage : lease.gpus)
      shares.push_back({lease.name, lease.id, usage.uuid, usage.limit_bytes, usage.used_bytes,
                        seconds_of(usage.compute.charged_ns)});
  return shares;
}

std::vector<UsageMeter::Power> powers_of(const std::vector<LatestReading>& readings) {
  std::vector<UsageMeter::Power> powers;
  for (const LatestReading& latest : readings) {
    if (latest.read_at == 0 || !latest.reading) continue;
    const inventory::NvmlState& state = latest.reading->state;
    UsageMeter::Power power{latest.uuid, latest.read_at, std::nullopt, std::nullopt};
    if (state.energy_mj) power.energy_j = static_cast<double>(*state.energy_mj) * 0.001;
    if (state.power_mw) power.power_w = *state.power_mw * 0.001;
    powers.push_back(std::move(power));
  }
  return powers;
}

// Whole or not at all, as far as this boot sees; what a loss of power takes is of no use after it,
// and a scrape does not wait for a disk.
Status replace_file(const std::filesystem::path& path, const std::string& content) {
  const std::string beside = path.string() + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file || ::rename(beside.c_str(), path.c_str()) != 0) return errno_error("write", path);
  return {};
}

}  // namespace

UsageWatch::UsageWatch(Surroundings surroundings, std::filesystem::path file, log::Log log)
    : surroundings_(surroundings), file_(std::move(file)), log_(std::move(log)) {
  std::error_code code;
  if (std::filesystem::exists(file_, code)) {
    const auto text = read_file(file_, kLargestFile);
    const Status read =
        text ? meter_.restore(*text, surroundings_.loop.now()) : Status(text.error());
    if (!read) log_.warning(read.error().message);
  }
  surroundings_.loop.every(kLookEvery, [this] { static_cast<void>(take()); });
}

std::vector<broker::LeaseRow> UsageWatch::take() {
  auto leases = surroundings_.book.rows_after("", kMostLeases);
  meter_.look(surroundings_.loop.now(), shares_of(leases),
              powers_of(surroundings_.probes.latest()));
  return leases;
}

UsageWatch::Look UsageWatch::look() {
  Look look;
  look.leases = take();
  look.totals = meter_.totals();
  look.text = meter_.text();
  return look;
}

void UsageWatch::keep(const Look& look) {
  const Status written = replace_file(file_, look.text);
  const std::lock_guard lock(mutex_);
  if (!written && !told_)
    log_.warning(written.error().message + "; counters begin anew with the next daemon");
  told_ = !written;
}

}  // namespace aliquot::node
