#include "cli/replay_options.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "cli/replay_cluster.h"
#include "common/files.h"

namespace aliquot::cli {

std::string policy_of(const std::string& name) {
  return name == kOurs ? std::string(kOursIs) : name;
}

Result<replay::Cluster> cluster_for(const ReplayOptions& options) {
  Result<replay::Cluster> cluster =
      options.cluster.empty() ? cluster_beside(options.trace) : cluster_of(options.cluster);
  if (!cluster || options.domains.empty()) return cluster;
  if (Status ok = add_domains(options.domains, *cluster); !ok) return ok.error();
  return cluster;
}

Status write_replay_files(const ReplayOptions& options, const ReplayFiles& files,
                          std::ostream& out) {
  for (const auto& [path, make] : {std::pair(&options.csv, &files.csv),
                                   {&options.json, &files.json},
                                   {&options.html, &files.html}}) {
    if (path->empty()) continue;
    if (Status ok = write_file_atomically(*path, (*make)()); !ok) return ok.error();
    out << "wrote " << *path << '\n';
  }
  return {};
}

ProgressBar::ProgressBar(std::ostream& err, std::string what)
    : err_(err), what_(std::move(what)), shown_(&err == &std::cerr && isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (shown_) err_ << "\r\x1b[K" << std::flush;
}

void ProgressBar::show(std::size_t done, std::size_t all) {
  const int percent = all == 0 ? 100 : static_cast<int>(done * 100 / all);
  if (!shown_ || percent == percent_) return;
  percent_ = percent;
  const auto filled = static_cast<std::size_t>(percent * 30 / 100);
  err_ << "\r" << what_ << " [" << std::string(filled, '#') << std::string(30 - filled, ' ') << "] "
       << percent << " %" << std::flush;
}

}  // namespace aliquot::cli
