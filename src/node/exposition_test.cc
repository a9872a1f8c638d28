#include "node/exposition.h"

#include <gtest/gtest.h>

#include <limits>

namespace aliquot::node {
namespace {

const std::vector<Family> kFamilies = {
    {"up_seconds", MetricType::kGauge, "seconds", "Since when.", {{{}, 1.5}}},
    {"xid", MetricType::kCounter, "", "XIDs.", {{{{"gpu", "0"}, {"xid", "79"}}, 3}}},
    {"node", MetricType::kInfo, "", "Names.", {{{{"name", "a"}}, 1}}},
    {"nothing", MetricType::kGauge, "", "No samples.", {}},
};

TEST(Exposition, PrometheusTextNamesEverySampleInItsHead) {
  EXPECT_EQ(expose(kFamilies, TextFormat::kPrometheus),
            "# HELP up_seconds Since when.\n"
            "# TYPE up_seconds gauge\n"
            "up_seconds 1.5\n"
            "# HELP xid_total XIDs.\n"
            "# TYPE xid_total counter\n"
            "xid_total{gpu=\"0\",xid=\"79\"} 3\n"
            "# HELP node_info Names.\n"
            "# TYPE node_info gauge\n"
            "node_info{name=\"a\"} 1\n");
}

TEST(Exposition, OpenMetricsNamesTheFamilyItsUnitAndItsEnd) {
  EXPECT_EQ(expose(kFamilies, TextFormat::kOpenMetrics),
            "# HELP up_seconds Since when.\n"
            "# TYPE up_seconds gauge\n"
            "# UNIT up_seconds seconds\n"
            "up_seconds 1.5\n"
            "# HELP xid XIDs.\n"
            "# TYPE xid counter\n"
            "xid_total{gpu=\"0\",xid=\"79\"} 3\n"
            "# HELP node Names.\n"
            "# TYPE node info\n"
            "node_info{name=\"a\"} 1\n"
            "# EOF\n");
}

TEST(Exposition, LabelsAreEscaped) {
  const std::vector<Family> odd = {
      {"x", MetricType::kGauge, "", "a\\b\nc", {{{{"k", "\"\\\n"}}, 0}}}};
  EXPECT_EQ(expose(odd, TextFormat::kPrometheus),
            "# HELP x a\\\\b\\nc\n# TYPE x gauge\nx{k=\"\\\"\\\\\\n\"} 0\n");
}

TEST(Exposition, NumbersAreExact) {
  const auto number = [](double value) {
    const std::string text =
        expose({{"x", MetricType::kGauge, "", "x", {{{}, value}}}}, TextFormat::kPrometheus);
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(number(85899345920.0), "85899345920\n");
  EXPECT_EQ(number(0.1), "0.1\n");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
}

TEST(Exposition, TheHeavierMediaRangeWins) {
  EXPECT_EQ(format_asked(""), TextFormat::kPrometheus);
  EXPECT_EQ(format_asked("*/*"), TextFormat::kPrometheus);
  EXPECT_EQ(format_asked("application/openmetrics-text;version=1.0.0;q=0.5,"
                         "application/openmetrics-text;version=0.0.1;q=0.4,"
                         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            TextFormat::kOpenMetrics);
  EXPECT_EQ(format_asked("text/plain , application/openmetrics-text; q=0.9"),
            TextFormat::kPrometheus);
  EXPECT_EQ(format_asked("application/openmetrics-text;q=0"), TextFormat::kPrometheus);
  EXPECT_EQ(format_asked("application/openmetrics-text"), TextFormat::kOpenMetrics);
}

}  // namespace
}  // namespace aliquot::node
