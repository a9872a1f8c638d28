// Many processes and threads on one lease, killed at random moments; so is the broker, if asked.
// Invariants are checked from outside. Test code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aliquot::broker {

struct StressPlan {
  unsigned kills = 2000;
  unsigned broker_kills = 0;
  std::uint64_t seed = 1;
  unsigned workers = 24;
  unsigned threads = 4;
};

struct StressReport {
  std::uint64_t kills = 0, broker_kills = 0, operations = 0, refused = 0, rolled_back = 0;
  std::uint64_t helped = 0, most_retries = 0, freezes = 0, drains = 0, lowered = 0;
  std::uint64_t highest_used = 0, limit = 0;
  double seconds = 0, longest_start_ms = 0;  // of a broker, to its first answer
  std::vector<std::string> violations;
};

StressReport stress(const StressPlan& plan);

// One line of figures.
std::string text_of(const StressReport& report);

}  // namespace aliquot::broker
