// UsageMeter: what each lease has used up of each of its GPUs: byte-seconds, GPU seconds, joules.
//
// Fed with looks at the leases and with the GPUs' power; between two looks a lease counts as it was
// at the first. A GPU's energy goes to its leases by the part of the time that each held it; what
// nobody held is nobody's, so that the leases' joules never sum to more than the GPU's. Counters
// only grow, also over a daemon that was killed: text() is what the next one goes on from, and is
// to be on disk before the figures are shown (docs/metrics.md). Leaves to others: the looks, the
// file. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace aliquot::node {

struct UsageTotals {
  double granted_byte_s = 0;
  double unused_byte_s = 0;
  double busy_s = 0;
  double energy_j = 0;
  bool operator==(const UsageTotals&) const = default;
};

class UsageMeter {
 public:
  // A lease's part of one GPU, now. `busy_s` may begin anew (another broker keeps the account).
  struct Share {
    std::string lease;
    std::uint64_t id = 0;  // tells leases of one name apart
    std::string uuid;
    std::uint64_t limit_bytes = 0;
    std::uint64_t used_bytes = 0;
    double busy_s = 0;
  };
  // What a GPU answered, and when. Without a counter of energy its power is taken over the time.
  struct Power {
    std::string uuid;
    Nanoseconds read_at = 0;
    std::optional<double> energy_j;
    std::optional<double> power_w;
  };
  using Key = std::tuple<std::string, std::uint64_t, std::string>;  // lease, id, uuid

  // Every lease there is: the account of one that is missing is closed.
  void look(Nanoseconds now, const std::vector<Share>& shares, const std::vector<Power>& powers);
  std::map<Key, UsageTotals> totals() const;

  std::string text() const;
  // Of the same boot only (`now` goes on): containers kept what they had while no daemon ran, so
  // byte-seconds count from the last look; what they did then nobody saw. An error changes nothing.
  Status restore(std::string_view text, Nanoseconds now);

 private:
  struct Account {
    UsageTotals totals;
    std::uint64_t limit_bytes = 0, used_bytes = 0;  // at `at`
    Nanoseconds at = 0;
    double seen_busy_s = 0;
    double pending_busy_s = 0;  // that no energy has been given for yet
  };
  struct Meter {
    Nanoseconds read_at = 0;
    std::optional<double> energy_j;
  };

  static void advance(Account& account, Nanoseconds now);
  void distribute(const Power& power);

  std::map<Key, Account> accounts_;
  std::map<std::string, Meter> meters_;  // by UUID
};

}  // namespace aliquot::node
