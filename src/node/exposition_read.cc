#include "node/exposition_read.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace aliquot::node {
namespace {

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Up to a blank; blanks are skipped.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

bool is_name(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == ':';
         });
}

// A quoted value, its quotes and escapes taken away; nullopt: it does not end.
std::optional<std::string> next_quoted(std::string_view& line) {
  if (!line.starts_with('"')) return std::nullopt;
  std::string value;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"') {
      line.remove_prefix(i + 1);
      return value;
    }
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      value += line[i] == 'n' ? '\n' : line[i];
    } else {
      value += line[i];
    }
  }
  return std::nullopt;
}

// From the brace on; false: not understood.
bool read_labels(std::string_view& line, Labels& labels) {
  if (!line.starts_with('{')) return true;
  line.remove_prefix(1);
  while (!line.starts_with('}')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || !is_name(line.substr(0, equals))) return false;
    std::string name(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    auto value = next_quoted(line);
    if (!value) return false;
    labels.emplace_back(std::move(name), *std::move(value));
    if (line.starts_with(',')) line.remove_prefix(1);
  }
  line.remove_prefix(1);
  return true;
}

struct Head {
  std::string help;
  bool gauge = false;
};

// "HELP NAME words" or "TYPE NAME type", after the "# ".
void read_comment(std::string_view line, std::map<std::string, Head, std::less<>>& heads) {
  const std::string_view what = next_word(line);
  const std::string_view name = next_word(line);
  if (!is_name(name)) return;
  Head& head = heads[std::string(name)];
  if (what == "HELP" && !line.empty()) head.help = line.substr(1);
  if (what == "TYPE") head.gauge = next_word(line) == "gauge";
}

}  // namespace

std::vector<Family> read_exposition(std::string_view text, std::string_view prefix) {
  std::map<std::string, Head, std::less<>> heads;
  std::map<std::string, Family, std::less<>> families;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (line.starts_with('#')) {
      read_comment(line.substr(1), heads);
      continue;
    }
    const std::string_view name = line.substr(0, std::min(line.find_first_of("{ \t"), line.size()));
    if (!name.starts_with(prefix) || !is_name(name)) continue;
    line.remove_prefix(name.size());
    Sample sample;
    if (!read_labels(line, sample.labels)) continue;
    const std::string_view number = next_word(line);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), sample.value);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) continue;
    Family& family = families[std::string(name)];
    family.samples.push_back(std::move(sample));
  }
  std::vector<Family> all;
  for (auto& [name, family] : families) {
    const auto head = heads.find(name);
    family.name = name;
    family.type =
        head != heads.end() && head->second.gauge ? MetricType::kGauge : MetricType::kUntyped;
    family.help = head != heads.end() && !head->second.help.empty() ? head->second.help : name;
    all.push_back(std::move(family));
  }
  return all;
}

void merge_exposition(const NodeFigures& figures, std::vector<Family> theirs,
                      std::vector<Family>& families) {
  std::set<std::string> served, silent;
  for (const Family& family : families) served.insert(family.name);
  for (const GpuFigures& gpu : figures.gpus)
    if (!gpu.memory_total_bytes) silent.insert(gpu.uuid);
  for (Family& family : theirs) {
    if (served.contains(family.name)) continue;
    std::erase_if(family.samples, [&](const Sample& sample) {
      return std::ranges::any_of(sample.labels, [&](const auto& label) {
        return label.first == "UUID" && silent.contains(label.second);
      });
    });
    families.push_back(std::move(family));
  }
}

}  // namespace aliquot::node
