// Metrics as text: the Prometheus format 0.0.4 and OpenMetrics 1.0.
//
// A scrape builds its families anew from a snapshot and prints them: no registry, so that a series
// can never outlive what it speaks of. (prometheus-cpp 1.0 keeps children until they are removed by
// hand and has neither units nor OpenMetrics.) Leaves to others: what is measured (metrics.h).
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aliquot::node {

enum class MetricType : std::uint8_t {
  kGauge,
  kCounter,  // named without "_total": the format adds it
  kInfo,     // named without "_info"; every value is 1
  kUntyped,  // of another system, whose counters need not be named as such
};

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  Labels labels;
  double value = 0;
};

struct Family {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string unit;  // "bytes", "seconds": the end of the name; empty: none
  std::string help;
  std::vector<Sample> samples;
};

enum class TextFormat : std::uint8_t { kPrometheus, kOpenMetrics };

// What the Accept header of a scrape asks for; Prometheus text when it asks for neither.
TextFormat format_asked(std::string_view accept);
std::string_view content_type(TextFormat format);

// Families without samples are left out.
std::string expose(const std::vector<Family>& families, TextFormat format);

}  // namespace aliquot::node
