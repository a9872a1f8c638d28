#include "replay/inflation_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "replay/report_page.h"
#include "replay/report_svg.h"

namespace aliquot::replay {
namespace {

using format::Json;

Spread spread_of(const InflationRuns& runs,
                 const std::function<double(const InflationResult&)>& value) {
  Spread spread;
  if (runs.results.empty()) return spread;
  spread.least = spread.most = value(runs.results[0]);
  for (const InflationResult& result : runs.results) {
    const double one = value(result);
    spread.mean += one / static_cast<double>(runs.results.size());
    spread.least = std::min(spread.least, one);
    spread.most = std::max(spread.most, one);
  }
  return spread;
}

std::string two_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string spread_text(const Spread& spread) {
  return two_decimals(spread.mean) + " % <span class=\"note\">(" + two_decimals(spread.least) +
         " to " + two_decimals(spread.most) + ")</span>";
}

std::string table_of(const InflationReport& report) {
  std::string text = "<table>\n" + table_row({"policy", "seeds", "allocated at 100 %", "at 130 %",
                                              "fragmented", "pods refused, mean"},
                                             "th");
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const InflationRuns& runs = report.runs[i];
    text += table_row({colour_key(i) + escaped(runs.policy), std::to_string(runs.seeds.size()),
                       spread_text(allocated_at(runs, 100)), spread_text(allocated_at(runs, 130)),
                       spread_text(fragmented(runs)), one_decimal(refused(runs).mean)},
                      "td");
  }
  return text + "</table>\n<p class=\"note\">Means over the seeds, least and most.</p>\n";
}

std::string plot_of(const InflationReport& report) {
  std::vector<Line> lines;
  for (const InflationRuns& runs : report.runs) {
    Line line{runs.policy, {}};
    for (int percent = 0; percent <= kMostArrivedPercent; ++percent)
      line.points.emplace_back(percent, allocated_at(runs, percent).mean);
    lines.push_back(std::move(line));
  }
  return line_plot("GPUs allocated, percent, while so much has arrived", lines, 100,
                   PlotAlong::kPercent);
}

constexpr std::array kAssumed{
    "Placed in virtual time: nothing ran, no GPU was used. The decisions are the scheduler's.",
    "Protocol of the FGD paper (USENIX ATC 2023): pods are drawn from the list until 130 % of the "
    "cluster's GPUs are asked, none leaves, a refused pod is gone.",
    "Nodes are taken in an order permuted by the seed, which decides ties."};

}  // namespace

Spread allocated_at(const InflationRuns& runs, int arrived_percent) {
  return spread_of(runs, [&](const InflationResult& result) {
    return result.allocated[static_cast<std::size_t>(arrived_percent)];
  });
}

Spread fragmented(const InflationRuns& runs) {
  return spread_of(runs, [](const InflationResult& result) { return result.fragmented; });
}

Spread refused(const InflationRuns& runs) {
  return spread_of(
      runs, [](const InflationResult& result) { return static_cast<double>(result.refused_pods); });
}

std::string inflation_csv(const InflationReport& report) {
  std::string text = "policy,seed,arrived_percent,allocated_percent\n";
  for (const InflationRuns& runs : report.runs)
    for (std::size_t i = 0; i < runs.results.size(); ++i)
      for (std::size_t percent = 0; percent <= kMostArrivedPercent; ++percent)
        text += runs.policy + "," + std::to_string(runs.seeds[i]) + "," + std::to_string(percent) +
                "," + two_decimals(runs.results[i].allocated[percent]) + "\n";
  return text;
}

Json inflation_json(const InflationReport& report) {
  Json policies = Json::array();
  for (const InflationRuns& runs : report.runs) {
    Json seeds = Json::array();
    for (std::size_t i = 0; i < runs.results.size(); ++i) {
      const InflationResult& result = runs.results[i];
      Json allocated = Json::array();
      for (const double percent : result.allocated) allocated.append(percent);
      seeds.append(Json::object()
                       .set("seed", static_cast<std::int64_t>(runs.seeds[i]))
                       .set("allocated_percent", std::move(allocated))
                       .set("fragmented_percent", result.fragmented)
                       .set("arrived_pods", result.arrived_pods)
                       .set("refused_pods", result.refused_pods)
                       .set("arrived_8gpu", result.arrived_8gpu)
                       .set("placed_8gpu", result.placed_8gpu));
    }
    policies.append(Json::object().set("policy", runs.policy).set("seeds", std::move(seeds)));
  }
  Json assumptions = Json::array();
  for (const char* one : kAssumed) assumptions.append(one);
  return Json::object()
      .set("format", "aliquot-inflation/1")
      .set("simulated", true)
      .set("list", report.list)
      .set("cluster", report.cluster)
      .set("assumptions", std::move(assumptions))
      .set("runs", std::move(policies));
}

std::string inflation_html(const InflationReport& report) {
  std::string body = "<p class=\"note\"><span class=\"mark\">simulated</span> Pods arrive on " +
                     escaped(report.cluster) + ".</p>\n" + table_of(report) + plot_of(report) +
                     "<h2>What is assumed</h2>\n<ul>\n";
  for (const char* one : kAssumed) body += "<li>" + escaped(one) + "</li>\n";
  return page_of("Inflation of " + report.list, body + "</ul>\n");
}

}  // namespace aliquot::replay
