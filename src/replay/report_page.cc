#include "replay/report_page.h"

#include <array>
#include <cstdio>

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
dt { font-weight: 600; margin-top: .6rem; }
td.reason { text-align: left; max-width: 44rem; }
)";

}  // namespace

std::string page_of(std::string_view title, const std::string& body) {
  const std::string heading = escaped(title);
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         heading + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<h1>" +
         heading + "</h1>\n" + body + "</body>\n</html>\n";
}

std::string table_row(const std::vector<std::string>& texts, std::string_view tag) {
  const std::string name(tag);
  std::string row = "<tr>";
  for (const std::string& text : texts)
    row.append("<").append(name).append(">").append(text).append("</").append(name).append(">");
  return row + "</tr>\n";
}

std::string one_decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string colour_key(std::size_t index) {
  return "<span class=\"key\" style=\"background:" + std::string(line_colour(index)) + "\"></span>";
}

}  // namespace aliquot::replay
