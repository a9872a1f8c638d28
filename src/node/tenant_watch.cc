#include "node/tenant_watch.h"

#include <algorithm>

namespace aliquot::node {

std::vector<Misconduct> misconduct_in(const std::vector<broker::LeaseRow>& leases) {
  std::vector<Misconduct> found;
  for (const broker::LeaseRow& lease : leases) {
    if (lease.state == wire::LeaseState::kPoisoned)
      found.push_back({lease.name, "truncated its ledger: nothing is granted to it any more"});
    else if (lease.anomalies != 0)
      found.push_back({lease.name, "wrote its ledger outside the protocol; it was put right"});
    if (lease.held_off != 0)
      found.push_back({lease.name, "floods its socket; it waits while others are served"});
    for (const broker::UsageRow& gpu : lease.gpus)
      if (gpu.held_back_bytes != 0)
        found.push_back({lease.name, "holds more of GPU " + std::to_string(gpu.index) +
                                         " than is charged to it; it may take that much less"});
  }
  return found;
}

std::vector<Misconduct> news_in(const std::vector<Misconduct>& now,
                                const std::vector<Misconduct>& before) {
  std::vector<Misconduct> news;
  for (const Misconduct& one : now)
    if (std::ranges::find(before, one) == before.end()) news.push_back(one);
  return news;
}

}  // namespace aliquot::node
