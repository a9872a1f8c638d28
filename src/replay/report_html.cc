// Of report.h: the page.
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "replay/report.h"
#include "replay/report_svg.h"

namespace aliquot::replay {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
       color: #222; background: #fff; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
.note { color: #555; }
.mark { background: #fff3cd; padding: .1rem .4rem; border-radius: .2rem; }
table { border-collapse: collapse; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd;
         font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: #444; }
svg text.title { font-size: 13px; font-weight: 600; fill: #222; }
svg .grid { stroke: #e4e4e4; fill: none; }
svg .line { fill: none; stroke-width: 1.6; }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(28rem, 1fr)); gap: 1rem; }
td.reason { text-align: left; max-width: 44rem; }
)";
constexpr std::size_t kMostReasons = 12;

std::string decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string cells(const std::vector<std::string>& texts, std::string_view tag) {
  const std::string name(tag);
  std::string row = "<tr>";
  for (const std::string& text : texts)
    row.append("<").append(name).append(">").append(text).append("</").append(name).append(">");
  return row + "</tr>\n";
}

std::string summary_table(const Report& report) {
  std::string text = "<table>\n" + cells({"policy", "placed at once", "delayed", "still waiting",
                                          "never", "GPUs used, mean", "peak", "fragmented, mean",
                                          "wait, mean", "wait, 95 %", "longest", "all done after"},
                                         "th");
  for (std::size_t i = 0; i < report.timelines.size(); ++i) {
    const Summary s = summary_of(report.trace, report.timelines[i]);
    text +=
        cells({"<span class=\"key\" style=\"background:" + std::string(line_colour(i)) +
                   "\"></span>" + escaped(s.policy),
               std::to_string(s.placed), std::to_string(s.delayed), std::to_string(s.waiting),
               std::to_string(s.refused), decimal(s.mean_used) + " %", decimal(s.peak_used) + " %",
               decimal(s.mean_fragmented) + " %", time_text(std::lround(s.mean_wait_s)),
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
  return "<h2>Jobs that never ran</h2>\n<table>\n" + cells({"policy", "job", "why"}, "th") + rows +
         "</table>\n<p class=\"note\">At most " + std::to_string(kMostReasons) +
         " of each policy; the JSON has all.</p>\n";
}

std::string assumptions(const Report& report) {
  std::string text = "<h2>What is assumed</h2>\n<ul>\n";
  for (const std::string& one : assumptions_of(report)) text += "<li>" + escaped(one) + "</li>\n";
  return text + "</ul>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title = "Replay of " + escaped(report.trace.name);
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         title + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<h1>" +
         title + "</h1>\n<p class=\"note\"><span class=\"mark\">simulated</span> " +
         std::to_string(report.trace.jobs.size()) +
         " jobs, replayed in virtual time on a described cluster, " + escaped(report.cluster.name) +
         " (" + escaped(cluster_text(report.cluster)) + ").</p>\n" + summary_table(report) +
         plots(report) + heat_maps(report) + reasons(report) + assumptions(report) +
         "</body>\n</html>\n";
}

}  // namespace aliquot::replay
