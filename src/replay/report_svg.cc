#include "replay/report_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace aliquot::replay {
namespace {

constexpr int kWidth = 860;
constexpr int kHeight = 230;
constexpr int kLeft = 56;
constexpr int kRight = 12;
constexpr int kTop = 28;
constexpr int kBottom = 26;
constexpr int kTicks = 4;
constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostColumns = 120;

// Okabe and Ito's colours, which the colour-blind can tell apart.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#444444"};

// With one decimal, or none where it is .0: no locale, and short.
std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  std::string written = text.data();
  if (written.ends_with(".0")) written.resize(written.size() - 2);
  return written;
}

std::string open_svg(std::string_view title, int height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + std::to_string(kWidth) + " " +
         std::to_string(height) + "\" role=\"img\" aria-label=\"" + escaped(title) +
         "\"><text class=\"title\" x=\"" + std::to_string(kLeft) + "\" y=\"16\">" + escaped(title) +
         "</text>";
}

std::string label(double x, double y, std::string_view anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + escaped(text) + "</text>";
}

// From values to places on the sheet.
struct Scale {
  std::int64_t begin = 0;
  std::int64_t end = 1;
  double most = 1;
  double x(std::int64_t time) const {
    return kLeft + static_cast<double>(kWidth - kLeft - kRight) *
                       static_cast<double>(time - begin) / static_cast<double>(end - begin);
  }
  double y(double value) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * std::min(value / most, 1.0);
  }
};

Scale scale_of(const std::vector<Line>& lines, double most) {
  Scale scale;
  bool any = false;
  double largest = 0;
  for (const Line& line : lines)
    for (const auto& [time, value] : line.points) {
      scale.begin = any ? std::min(scale.begin, time) : time;
      scale.end = any ? std::max(scale.end, time) : time;
      largest = std::max(largest, value);
      any = true;
    }
  scale.end = std::max(scale.end, scale.begin + 1);
  scale.most = most > 0 ? most : std::max(largest, 1.0);
  return scale;
}

std::string along_axis(std::int64_t begin, std::int64_t end, double y, PlotAlong along) {
  std::string text;
  for (int i = 0; i <= kTicks; ++i) {
    const double x = kLeft + static_cast<double>(kWidth - kLeft - kRight) * i / kTicks;
    const std::string_view anchor = i == 0 ? "start" : i == kTicks ? "end" : "middle";
    const std::int64_t at = (end - begin) * i / kTicks;
    text += label(x, y, anchor,
                  along == PlotAlong::kSeconds ? time_text(at)
                                               : number(static_cast<double>(begin + at)) + " %");
  }
  return text;
}

std::string axes(const Scale& scale, PlotAlong along) {
  std::string text;
  for (int i = 0; i <= kTicks; ++i) {
    const double value = scale.most * i / kTicks;
    const std::string y = number(scale.y(value));
    text += "<path class=\"grid\" d=\"M" + std::to_string(kLeft) + " " + y + "H" +
            std::to_string(kWidth - kRight) + "\"/>" +
            label(kLeft - 6, scale.y(value) + 4, "end", number(value));
  }
  return text + along_axis(scale.begin, scale.end, kHeight - 8, along);
}

std::string path_of(const Line& line, const Scale& scale, std::string_view colour) {
  std::string d;
  for (const auto& [time, value] : line.points) {
    const std::string x = number(scale.x(time));
    const std::string y = number(scale.y(value));
    const bool first = d.empty();
    d.append(first ? "M" : "H").append(x).append(first ? " " : "V").append(y);
  }
  if (d.empty()) return "";
  return "<path class=\"line\" stroke=\"" + std::string(colour) + "\" d=\"" + d + "\"><title>" +
         escaped(line.name) + "</title></path>";
}

// ---- heat map

// Which nodes each row stands for: [first, last) of the nodes with GPUs.
using Rows = std::vector<std::vector<std::size_t>>;

Rows rows_of(const std::vector<model::NodeSpec>& nodes) {
  std::vector<std::size_t> with_gpus;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].gpu_count > 0) with_gpus.push_back(i);
  Rows rows(std::min(with_gpus.size(), kMostRows));
  for (std::size_t i = 0; i < with_gpus.size(); ++i)
    rows[i * rows.size() / with_gpus.size()].push_back(with_gpus[i]);
  return rows;
}

// White to dark blue in eleven steps, so that neighbours of nearly equal use draw as one.
std::string shade(int tenths) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", static_cast<unsigned>(247 - 24 * tenths),
                static_cast<unsigned>(251 - 18 * tenths), static_cast<unsigned>(255 - 12 * tenths));
  return text.data();
}

int tenths_of(const Sample& sample, const std::vector<std::size_t>& row) {
  int sum = 0;
  for (const std::size_t node : row) sum += sample.node_percent[node];
  return static_cast<int>(std::lround(sum / 10.0 / static_cast<double>(row.size())));
}

std::string heat_row(const Timeline& timeline, const std::vector<std::size_t>& row, double y,
                     double height) {
  const std::size_t columns = std::min(timeline.samples.size(), kMostColumns);
  const double width = static_cast<double>(kWidth - kLeft - kRight) / static_cast<double>(columns);
  const auto tenths = [&](std::size_t column) {
    return tenths_of(timeline.samples[column * timeline.samples.size() / columns], row);
  };
  std::string text;
  for (std::size_t from = 0; from < columns;) {
    std::size_t to = from + 1;
    const int value = tenths(from);
    while (to < columns && tenths(to) == value) ++to;
    text += "<path fill=\"" + shade(value) + "\" d=\"M" +
            number(kLeft + width * static_cast<double>(from)) + " " + number(y) + "H" +
            number(kLeft + width * static_cast<double>(to)) + "v" + number(height) + "H" +
            number(kLeft + width * static_cast<double>(from)) + "z\"/>";
    from = to;
  }
  return text;
}

std::string key_of_shades() {
  std::string text;
  for (int i = 0; i <= 10; ++i)
    text += "<rect x=\"" + std::to_string(kWidth - kRight - 170 + 11 * i) +
            "\" y=\"8\" width=\"11\" height=\"9\" fill=\"" + shade(i) + "\"/>";
  return text + label(kWidth - kRight - 176, 16, "end", "0 %") +
         label(kWidth - kRight - 44, 16, "start", "100 %");
}

}  // namespace

std::string_view line_colour(std::size_t index) { return kColours[index % kColours.size()]; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string time_text(std::int64_t seconds) {
  const auto s = static_cast<double>(seconds);
  if (seconds == 0) return "0";
  if (seconds < 600) return number(s) + " s";
  if (seconds < 7200) return number(s / 60) + " min";
  if (seconds < 259'200) return number(s / 3600) + " h";
  return number(s / 86400) + " d";
}

std::string line_plot(std::string_view title, const std::vector<Line>& lines, double most,
                      PlotAlong along) {
  const Scale scale = scale_of(lines, most);
  std::string text = open_svg(title, kHeight) + axes(scale, along);
  for (std::size_t i = 0; i < lines.size(); ++i) text += path_of(lines[i], scale, line_colour(i));
  return text + "</svg>\n";
}

std::string heat_map(std::string_view title, const Timeline& timeline,
                     const std::vector<model::NodeSpec>& nodes) {
  const Rows rows = rows_of(nodes);
  if (rows.empty() || timeline.samples.empty()) return "";
  const double height = rows.size() > 20 ? 6 : 14;
  const double bottom = kTop + height * static_cast<double>(rows.size());
  std::string text = open_svg(title, static_cast<int>(bottom) + kBottom) + key_of_shades();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + height * static_cast<double>(i);
    const std::string& first = nodes[rows[i].front()].name;
    const std::string name =
        rows[i].size() == 1 ? first : first + " to " + nodes[rows[i].back()].name;
    text +=
        "<g><title>" + escaped(name) + "</title>" + heat_row(timeline, rows[i], y, height) + "</g>";
    if (height > 10) text += label(kLeft - 6, y + height - 3, "end", first.substr(0, 9));
  }
  return text +
         along_axis(timeline.samples.front().time_s, timeline.samples.back().time_s, bottom + 16,
                    PlotAlong::kSeconds) +
         "</svg>\n";
}

}  // namespace aliquot::replay
