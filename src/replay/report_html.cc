// Of report.h: the page.
#include <array>
#include <cmath>
#include <functional>

#include "replay/report.h"
#include "replay/report_page.h"
#include "replay/report_svg.h"

namespace aliquot::replay {
namespace {

constexpr std::size_t kMostReasons = 12;

std::string summary_table(const Report& report) {
  std::string text =
      "<table>\n" + table_row({"policy", "placed at once", "delayed", "still waiting", "never",
                               "GPUs used, mean", "at work, mean", "peak", "fragmented, mean",
                               "wait, mean", "wait, 95 %", "longest", "all done after"},
                              "th");
  for (std::size_t i = 0; i < report.timelines.size(); ++i) {
    const Summary s = summary_of(report.trace, report.timelines[i]);
    text += table_row(
        {colour_key(i) + escaped(s.policy), std::to_string(s.placed), std::to_string(s.delayed),
         std::to_string(s.waiting), std::to_string(s.refused), one_decimal(s.mean_used) + " %",
         one_decimal(s.mean_busy) + " %", one_decimal(s.peak_used) + " %",
         one_decimal(s.mean_fragmented) + " %", time_text(std::lround(s.mean_wait_s)),
         time_text(s.p95_wait_s), time_text(s.longest_wait_s), time_text(s.took_s)},
        "td");
  }
  return text +
         "</table>\n<p class=\"note\">Means of use and fragmentation are over time until the "
         "last arrival, in parts of all GPUs. Waits are of the jobs that ran.</p>\n";
}

std::string plot(const Report& report, std::string_view title, double most,
                 const std::function<double(const Timeline&, const Sample&)>& value) {
  std::vector<Line> lines;
  for (const Timeline& timeline : report.timelines) {
    Line line{timeline.policy, {}};
    for (const Sample& sample : timeline.samples)
      line.points.emplace_back(sample.time_s, value(timeline, sample));
    lines.push_back(std::move(line));
  }
  return line_plot(title, lines, most);
}

double percent_of_all(const Timeline& timeline, std::int64_t milli) {
  return timeline.total_milli == 0
             ? 0
             : 100.0 * static_cast<double>(milli) / static_cast<double>(timeline.total_milli);
}

std::string plots(const Report& report) {
  const auto used = [](const Timeline& t, const Sample& s) {
    return percent_of_all(t, s.used_milli);
  };
  const auto busy = [](const Timeline& t, const Sample& s) {
    return percent_of_all(t, s.busy_milli);
  };
  const auto fragmented = [](const Timeline& t, const Sample& s) {
    return percent_of_all(t, s.fragmented_milli);
  };
  const auto waiting = [](const Timeline&, const Sample& s) {
    return static_cast<double>(s.waiting);
  };
  const auto running = [](const Timeline&, const Sample& s) {
    return static_cast<double>(s.running);
  };
  return "<h2>Over time</h2>\n" + plot(report, "Allocation: GPUs in use, percent", 100, used) +
         plot(report, "Utilisation: GPUs at work, percent", 100, busy) +
         plot(report, "Fragmentation: free but of no use to this mix, percent of all GPUs", 100,
              fragmented) +
         plot(report, "Waiting jobs", 0, waiting) + plot(report, "Running jobs", 0, running);
}

std::string heat_maps(const Report& report) {
  std::string text = "<h2>Use of each node's GPUs</h2>\n<div class=\"side\">\n";
  for (const Timeline& timeline : report.timelines)
    text += "<div>" + heat_map(timeline.policy, timeline, report.cluster.nodes) + "</div>\n";
  return text + "</div>\n";
}

// Jobs that never ran, the first few of each policy; the JSON has all.
std::string reasons(const Report& report) {
  std::string rows;
  for (const Timeline& timeline : report.timelines) {
    std::size_t shown = 0;
    for (std::size_t i = 0; i < timeline.outcomes.size() && shown < kMostReasons; ++i) {
      const JobOutcome& outcome = timeline.outcomes[i];
      if (outcome.ran()) continue;
      ++shown;
      rows += "<tr><td>" + escaped(timeline.policy) + "</td><td>" +
              escaped(report.trace.jobs[i].request.name) + "</td><td class=\"reason\">" +
              escaped(outcome.reason) + "</td></tr>\n";
    }
  }
  if (rows.empty()) return "";
  return "<h2>Jobs that never ran</h2>\n<table>\n" + table_row({"policy", "job", "why"}, "th") +
         rows + "</table>\n<p class=\"note\">At most " + std::to_string(kMostReasons) +
         " of each policy; the JSON has all.</p>\n";
}

std::string answers(const Report& report) {
  if (!report.answers) return "";
  static constexpr std::array kQuestions{
      "How many jobs use under 30 % of what they hold, and what is wasted?",
      "How much does sharing raise the use of GPUs against whole-GPU allocation?",
      "How much shorter do distributed jobs run on GPUs chosen by their links?"};
  const std::vector<std::string> said = sentences(*report.answers);
  std::string text = "<h2>Answers</h2>\n<dl>\n";
  for (std::size_t i = 0; i < kQuestions.size(); ++i)
    text += "<dt>" + escaped(kQuestions[i]) + "</dt><dd>" + escaped(said[i]) + "</dd>\n";
  return text + "</dl>\n";
}

std::string assumptions(const Report& report) {
  std::string text = "<h2>What is assumed</h2>\n<ul>\n";
  for (const std::string& one : assumptions_of(report)) text += "<li>" + escaped(one) + "</li>\n";
  return text + "</ul>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  return page_of("Replay of " + report.trace.name,
                 "<p class=\"note\"><span class=\"mark\">simulated</span> " +
                     std::to_string(report.trace.jobs.size()) +
                     " jobs, replayed in virtual time on a described cluster, " +
                     escaped(report.cluster.name) + " (" + escaped(cluster_text(report.cluster)) +
                     ").</p>\n" + answers(report) + summary_table(report) + plots(report) +
                     heat_maps(report) + reasons(report) + assumptions(report));
}

}  // namespace aliquot::replay
