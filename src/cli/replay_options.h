// What `aliquot replay` is asked, and what its ways of replaying share: the progress bar and the
// files that it writes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "replay/timeline.h"

namespace aliquot::cli {

// The name under which the default is known to people; the scheduler calls it by what it does.
inline constexpr std::string_view kOurs = "ours";
inline constexpr std::string_view kOursIs = "rollout";

struct ReplayOptions {
  std::string trace;
  std::string cluster;
  std::string domains;
  std::vector<std::string> policies{std::string(kOurs)};
  std::uint64_t seed = 42;
  std::int64_t dense = 1;
  replay::TimeModel time = replay::TimeModel::kAsListed;
  bool answers = false;
  std::int64_t all_reduce_mb_s = 557;
  bool inflation = false;
  int seeds = 1;
  std::string csv;
  std::string json;
  std::string html;
};

// The scheduler's name of a policy.
std::string policy_of(const std::string& name);

Result<replay::Cluster> cluster_for(const ReplayOptions& options);

// What each file holds, made only where it is asked for.
struct ReplayFiles {
  std::function<std::string()> csv;
  std::function<std::string()> json;
  std::function<std::string()> html;
};
// Says on `out` what it wrote.
Status write_replay_files(const ReplayOptions& options, const ReplayFiles& files,
                          std::ostream& out);

// A line on a terminal that shows how far a run is; nothing elsewhere, and gone at the end.
class ProgressBar {
 public:
  ProgressBar(std::ostream& err, std::string what);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();
  void show(std::size_t done, std::size_t all);

 private:
  std::ostream& err_;
  std::string what_;
  bool shown_;
  int percent_ = -1;
};

}  // namespace aliquot::cli
