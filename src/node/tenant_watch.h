// What tenants do that they should not, as the broker's rows show it: to be told to people (Events,
// `aliquot ps`). None of it gave them anything. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"

namespace aliquot::node {

struct Misconduct {
  std::string lease;
  std::string text;  // what it does and what was done about it; the same words every time
  bool operator==(const Misconduct&) const = default;
};

std::vector<Misconduct> misconduct_in(const std::vector<broker::LeaseRow>& leases);

// Of `now`, what `before` did not have.
std::vector<Misconduct> news_in(const std::vector<Misconduct>& now,
                                const std::vector<Misconduct>& before);

}  // namespace aliquot::node
