#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/compute_options.h"
#include "cli/compute_view.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

using broker::ComputeState;
using broker::LeaseRow;
using broker::UsageRow;

constexpr unsigned kBar = 8;
constexpr std::string_view kRed = "31", kYellow = "33", kGreen = "32", kBold = "1";

std::string painted(std::string_view text, std::string_view how, bool color) {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", how, text) : std::string(text);
}

// "####....": `part` of 1; where `mark` of 1 lies within, a '|' stands.
std::string bar(double part, double mark) {
  const auto place = [](double of) {
    return static_cast<unsigned>(std::lround(std::clamp(of, 0.0, 1.0) * kBar));
  };
  std::string text(kBar, '.');
  std::fill_n(text.begin(), place(part), '#');
  if (mark > 0 && mark < 1) text[std::min(place(mark), kBar - 1)] = '|';
  return text;
}

// Both in the unit of the limit, so that they can be compared at a glance: "3.2/8G".
std::string memory_cell(const UsageRow& usage) {
  const bool gib = usage.limit_bytes >= model::kGiB;
  const auto unit = static_cast<double>(gib ? model::kGiB : model::kMiB);
  const auto figure = [&](std::uint64_t bytes) {
    const double value = static_cast<double>(bytes) / unit;
    return value < 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
  };
  return figure(usage.used_bytes) + '/' + figure(usage.limit_bytes) + (gib ? 'G' : 'M');
}

// Since `before`, in percent of one thread's time; without it the sum.
std::string waiting_cell(const UsageRow& usage, const UsageRow* before, Nanoseconds between) {
  if (before == nullptr || between <= 0) return time_text(usage.waiting_ns);
  const std::uint64_t waited =
      usage.waiting_ns > before->waiting_ns ? usage.waiting_ns - before->waiting_ns : 0;
  const double percent = 100.0 * static_cast<double>(waited) / static_cast<double>(between);
  return fmt::format("{:.0f}%", std::min(percent, 9999.0));
}

const UsageRow* usage_before(const TopFrame* before, const LeaseRow& lease, const UsageRow& usage) {
  if (before == nullptr) return nullptr;
  for (const LeaseRow& old : before->leases) {
    if (old.id != lease.id) continue;
    for (const UsageRow& row : old.gpus)
      if (row.uuid == usage.uuid) return &row;
  }
  return nullptr;
}

std::string_view color_of(const UsageRow& usage) {
  if (usage.compute.offender || usage.compute.state == ComputeState::kBanned) return kRed;
  if (usage.compute.state == ComputeState::kPaused || usage.compute.state == ComputeState::kCapped)
    return kYellow;
  return kGreen;
}

struct Line {
  std::string text;
  std::string remark;  // follows the text, painted
  std::string_view how;
};

Line line_of(const LeaseRow& lease, const UsageRow& usage, const UsageRow* before,
             Nanoseconds between) {
  const double share = usage.compute.share / 10'000.0;
  const double memory = usage.limit_bytes == 0 ? 0
                                               : static_cast<double>(usage.used_bytes) /
                                                     static_cast<double>(usage.limit_bytes);
  const std::string cores =
      fmt::format("{}/{:.0f}%", (usage.compute.busy + 50) / 100, usage.compute.share / 100.0);
  return {fmt::format("{:<10.10} {:>3} {} {:>9} {} {:>7} {:>6} {:>5} ", lease.name, usage.index,
                      bar(memory, 0), memory_cell(usage), bar(usage.compute.busy / 10'000.0, share),
                      cores, waiting_cell(usage, before, between), usage.refusals),
          compute_remark(usage.compute), color_of(usage)};
}

std::string title_of(const TopFrame& frame) {
  std::string machines;
  for (const LeaseRow& lease : frame.leases)
    if (machines.find(lease.driver) == std::string::npos)
      machines += (machines.empty() ? "" : ", ") + lease.driver;
  const bool simulated = machines.find("sim:") != std::string::npos;
  return fmt::format("aliquot top: {} {}{}", frame.leases.size(),
                     frame.leases.size() == 1 ? "lease" : "leases",
                     machines.empty() ? "" : " on " + machines + (simulated ? " (simulated)" : ""));
}

}  // namespace

std::string top_text(const TopFrame& frame, const TopFrame* before, const TopStyle& style) {
  std::vector<std::string> lines;
  const auto add = [&](const Line& line) {
    const std::string text = line.text.substr(0, style.columns);
    const std::string remark = line.remark.substr(0, style.columns - text.size());
    lines.push_back(text + (remark.empty() ? "" : painted(remark, line.how, style.color)));
  };
  add({"", title_of(frame), kBold});
  add({fmt::format("{:<10} {:>3} {:<18} {:<16} {:>6} {:>5} {}", "LEASE", "GPU", "MEMORY",
                   "TIME (| share)", "WAIT", "OOM", "COMPUTE"),
       "", kBold});
  const Nanoseconds between = before == nullptr ? 0 : frame.time - before->time;
  std::vector<std::pair<const LeaseRow*, const UsageRow*>> rows;
  for (const LeaseRow& lease : frame.leases)
    for (const UsageRow& usage : lease.gpus) rows.emplace_back(&lease, &usage);
  std::ranges::stable_sort(
      rows, {}, [](const auto& row) { return std::pair(row.first->driver, row.second->index); });
  for (const auto& [lease, usage] : rows)
    add(line_of(*lease, *usage, usage_before(before, *lease, *usage), between));
  if (rows.empty()) add({"no lease (aliquot run makes one)", "", kBold});
  for (const broker::BypassRow& row : frame.bypasses)
    add({"",
         fmt::format("process {} of lease {} uses GPU {} without having attached", row.pid,
                     row.lease, row.index),
         kRed});
  if (style.lines > 1 && lines.size() > style.lines) {
    const std::size_t hidden = lines.size() - style.lines + 1;
    lines.resize(style.lines - 1);
    lines.push_back(fmt::format("and {} more", hidden));
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace aliquot::cli
