#include "node/exposition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace aliquot::node {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Splits off what stands before `separator`.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// One media range: its type and weight (RFC 9110 12.5.1; 1 when it is not told).
struct MediaRange {
  std::string_view type;
  double weight = 1;
};

MediaRange media_range(std::string_view text) {
  MediaRange range{next_part(text, ';')};
  while (!text.empty()) {
    const std::string_view parameter = next_part(text, ';');
    if (!parameter.starts_with("q=")) continue;
    std::from_chars(parameter.data() + 2, parameter.data() + parameter.size(), range.weight);
  }
  return range;
}

void escape(std::string_view text, bool quotes, std::string& out) {
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || (quotes && c == '"'))
      (out += '\\') += c;
    else
      out += c;
  }
}

void append_number(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.append(text.data(), end);
  }
}

std::string_view suffix(MetricType type) {
  switch (type) {
    case MetricType::kGauge:
    case MetricType::kUntyped:
      return "";
    case MetricType::kCounter:
      return "_total";
    case MetricType::kInfo:
      return "_info";
  }
  return "";
}

std::string_view type_word(MetricType type, TextFormat format) {
  switch (type) {
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kCounter:
      return "counter";
    case MetricType::kInfo:
      return format == TextFormat::kOpenMetrics ? "info" : "gauge";
    case MetricType::kUntyped:
      return format == TextFormat::kOpenMetrics ? "unknown" : "untyped";
  }
  return "";
}

void append_head(const Family& family, TextFormat format, std::string& out) {
  // OpenMetrics names the family, the older format each sample's full name.
  std::string name = family.name;
  if (format == TextFormat::kPrometheus) name += suffix(family.type);
  out += "# HELP " + name + " ";
  escape(family.help, format == TextFormat::kOpenMetrics, out);
  out += "\n# TYPE " + name + " " + std::string(type_word(family.type, format)) + "\n";
  if (format == TextFormat::kOpenMetrics && !family.unit.empty())
    out += "# UNIT " + name + " " + family.unit + "\n";
}

void append_sample(const Family& family, const Sample& sample, std::string& out) {
  (out += family.name) += suffix(family.type);
  if (!sample.labels.empty()) {
    char joint = '{';
    for (const auto& [key, value] : sample.labels) {
      ((out += joint) += key) += "=\"";
      escape(value, true, out);
      out += '"';
      joint = ',';
    }
    out += '}';
  }
  out += ' ';
  append_number(sample.value, out);
  out += '\n';
}

}  // namespace

TextFormat format_asked(std::string_view accept) {
  double open = 0;
  double plain = 0;
  while (!accept.empty()) {
    const MediaRange range = media_range(next_part(accept, ','));
    if (range.type == "application/openmetrics-text") open = std::max(open, range.weight);
    if (range.type == "text/plain" || range.type == "text/*") plain = std::max(plain, range.weight);
  }
  return open > 0 && open >= plain ? TextFormat::kOpenMetrics : TextFormat::kPrometheus;
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string expose(const std::vector<Family>& families, TextFormat format) {
  std::string out;
  for (const Family& family : families) {
    if (family.samples.empty()) continue;
    append_head(family, format, out);
    for (const Sample& sample : family.samples) append_sample(family, sample, out);
  }
  if (format == TextFormat::kOpenMetrics) out += "# EOF\n";
  return out;
}

}  // namespace aliquot::node
