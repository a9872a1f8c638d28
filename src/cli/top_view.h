// What `aliquot top` shows of one moment: one line per lease and GPU. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"
#include "common/clock.h"

namespace aliquot::cli {

struct TopFrame {
  std::vector<broker::LeaseRow> leases;
  std::vector<broker::BypassRow> bypasses;
  Nanoseconds time = 0;
};

struct TopStyle {
  unsigned columns = 80;  // lines are cut there
  unsigned lines = 0;     // 0: as many as there are
  bool color = false;
};

// `before`: an earlier frame, by which waiting becomes a rate; null: what was waited in all. Ends
// with a newline. Readable from 80 columns on.
std::string top_text(const TopFrame& frame, const TopFrame* before, const TopStyle& style);

}  // namespace aliquot::cli
