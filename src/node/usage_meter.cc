#include "node/usage_meter.h"

#include <algorithm>

#include "format/described.h"
#include "node/seconds.h"

namespace aliquot::node {
namespace {

constexpr std::int64_t kVersion = 1;
// Power is no measure of a time in which it was not read.
constexpr double kLongestPowerGapS = 15;

}  // namespace

// The file: one row for each account.
struct UsageRow {
  std::string lease, uuid;
  std::uint64_t id = 0, limit = 0, used = 0;
  double granted = 0, unused = 0, busy = 0, energy = 0;
};
struct UsageFile {
  std::int64_t version = kVersion;
  std::int64_t at_ns = 0;
  std::vector<UsageRow> leases;
};

template <typename V>
static void describe(V& v, UsageRow& row) {
  v("lease", row.lease), v("id", row.id), v("uuid", row.uuid);
  v("limit_bytes", row.limit), v("used_bytes", row.used);
  v("granted_byte_s", row.granted), v("unused_byte_s", row.unused);
  v("busy_s", row.busy), v("energy_j", row.energy);
}

template <typename V>
static void describe(V& v, UsageFile& file) {
  v("version", file.version), v("at_ns", file.at_ns), v("leases", file.leases);
}

void UsageMeter::advance(Account& account, Nanoseconds now) {
  const double passed = seconds_of(std::max<Nanoseconds>(0, now - account.at));
  const std::uint64_t used = std::min(account.used_bytes, account.limit_bytes);
  account.totals.granted_byte_s += static_cast<double>(account.limit_bytes) * passed;
  account.totals.unused_byte_s += static_cast<double>(account.limit_bytes - used) * passed;
  account.at = now;
}

void UsageMeter::look(Nanoseconds now, const std::vector<Share>& shares,
                      const std::vector<Power>& powers) {
  std::map<Key, Account> next;
  for (const Share& share : shares) {
    Key key{share.lease, share.id, share.uuid};
    const auto old = accounts_.find(key);
    Account account;
    account.at = now;
    if (old != accounts_.end()) account = old->second;
    advance(account, now);
    const double grown = share.busy_s - account.seen_busy_s;
    const double busy = grown >= 0 ? grown : share.busy_s;
    account.totals.busy_s += busy;
    account.pending_busy_s += busy;
    account.seen_busy_s = share.busy_s;
    account.limit_bytes = share.limit_bytes;
    account.used_bytes = share.used_bytes;
    next.emplace(std::move(key), account);
  }
  accounts_ = std::move(next);
  for (const Power& power : powers) distribute(power);
}

// The first reading of a GPU only begins its account.
void UsageMeter::distribute(const Power& power) {
  Meter& meter = meters_[power.uuid];
  if (power.read_at <= meter.read_at) return;
  const double passed = seconds_of(power.read_at - meter.read_at);
  double joules = 0;
  if (meter.read_at != 0) {
    if (power.energy_j && meter.energy_j)
      joules = std::max(0.0, *power.energy_j - *meter.energy_j);
    else if (!power.energy_j && power.power_w)
      joules = *power.power_w * std::min(passed, kLongestPowerGapS);
  }
  meter = {power.read_at, power.energy_j};
  double held = 0;
  for (const auto& [key, account] : accounts_)
    if (std::get<2>(key) == power.uuid) held += account.pending_busy_s;
  for (auto& [key, account] : accounts_) {
    if (std::get<2>(key) != power.uuid) continue;
    if (held > 0)
      account.totals.energy_j += joules * account.pending_busy_s / std::max(held, passed);
    account.pending_busy_s = 0;
  }
}

std::map<UsageMeter::Key, UsageTotals> UsageMeter::totals() const {
  std::map<Key, UsageTotals> all;
  for (const auto& [key, account] : accounts_) all.emplace(key, account.totals);
  return all;
}

std::string UsageMeter::text() const {
  UsageFile file;
  for (const auto& [key, account] : accounts_) {
    const auto& [lease, id, uuid] = key;
    const UsageTotals& t = account.totals;
    file.at_ns = std::max<std::int64_t>(file.at_ns, account.at);
    file.leases.push_back({lease, uuid, id, account.limit_bytes, account.used_bytes,
                           t.granted_byte_s, t.unused_byte_s, t.busy_s, t.energy_j});
  }
  return format::write_described(file).dump() + "\n";
}

Status UsageMeter::restore(std::string_view text, Nanoseconds now) {
  const auto json = format::parse_json(text, "usage.json");
  if (!json) return json.error();
  UsageFile file;
  if (const Status read = format::read_described(*json, "usage.json", file); !read) return read;
  if (file.version != kVersion)
    return Error{Errc::kInvalid, "usage.json: version " + std::to_string(file.version) +
                                     " is not known; counters begin anew"};
  if (file.at_ns > now)
    return Error{Errc::kInvalid, "usage.json: written before the last boot; counters begin anew"};
  for (const UsageRow& row : file.leases) {
    Account account;
    account.totals = {row.granted, row.unused, row.busy, row.energy};
    account.limit_bytes = row.limit;
    account.used_bytes = row.used;
    account.at = file.at_ns;
    accounts_[{row.lease, row.id, row.uuid}] = account;
  }
  return {};
}

}  // namespace aliquot::node
