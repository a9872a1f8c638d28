// UsageWatch: feeds the UsageMeter every few seconds, and keeps what it says on disk.
//
// Before figures are shown they are kept: a daemon that is killed at any time leaves nothing that
// was shown and forgotten, so that no counter steps back. look() and the timer on the loop's
// thread, keep() on any.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "broker/book.h"
#include "broker/loop.h"
#include "log/log.h"
#include "node/probe_pool.h"
#include "node/usage_meter.h"

namespace aliquot::node {

class UsageWatch {
 public:
  // All outlive it.
  struct Surroundings {
    broker::Book& book;
    broker::Loop& loop;
    const ProbePool& probes;
  };
  struct Look {
    std::vector<broker::LeaseRow> leases;
    std::map<UsageMeter::Key, UsageTotals> totals;
    std::string text;  // for keep()
  };
  // Goes on from `file` where that can be read.
  UsageWatch(Surroundings surroundings, std::filesystem::path file, log::Log log);

  Look look();
  void keep(const Look& look);

 private:
  std::vector<broker::LeaseRow> take();

  Surroundings surroundings_;
  std::filesystem::path file_;
  log::Log log_;
  UsageMeter meter_;  // the loop's thread
  std::mutex mutex_;
  bool told_ = false;  // guarded by mutex_: that the file cannot be written
};

}  // namespace aliquot::node
