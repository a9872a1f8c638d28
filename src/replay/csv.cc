#include "replay/csv.h"

#include <algorithm>
#include <charconv>

namespace aliquot::replay {
namespace {

void split(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t end = line.find(separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string_view file, char separator)
    : rest_(text), file_(file), separator_(separator) {}

bool CsvReader::read_line() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    current_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++line_;
    if (!current_.empty() && current_.back() == '\r') current_.remove_suffix(1);
    if (current_.empty()) continue;
    split(current_, separator_, fields_);
    return true;
  }
  return false;
}

Error CsvReader::error_at(std::size_t column, const std::string& what) const {
  std::size_t at = 1;
  if (column < fields_.size())
    at += static_cast<std::size_t>(fields_[column].data() - current_.data());
  else
    at += current_.size();
  return {Errc::kInvalid, std::string(file_) + ":" +
                              std::to_string(std::max<std::size_t>(line_, 1)) + ":" +
                              std::to_string(at) + ": " + what};
}

Status CsvReader::expect_header(const std::vector<std::string_view>& required) {
  if (!read_line()) return error_at(0, "empty, expected a header line");
  header_ = fields_;
  required_ = required.size();
  for (std::size_t i = 0; i < required.size(); ++i)
    if (i >= header_.size() || header_[i] != required[i])
      return error_at(i, "expected column '" + std::string(required[i]) + "'");
  return {};
}

Result<bool> CsvReader::header_continues(const std::vector<std::string_view>& more) {
  if (header_.size() == required_) return false;
  for (std::size_t i = 0; i < more.size(); ++i)
    if (required_ + i >= header_.size() || header_[required_ + i] != more[i])
      return error_at(required_ + i, "expected column '" + std::string(more[i]) + "'");
  if (header_.size() > required_ + more.size())
    return error_at(required_ + more.size(), "a column too many");
  return true;
}

Result<bool> CsvReader::next() {
  if (!read_line()) return false;
  if (fields_.size() != header_.size())
    return error_at(std::min(fields_.size(), header_.size()), std::to_string(fields_.size()) +
                                                                  " fields, the header has " +
                                                                  std::to_string(header_.size()));
  return true;
}

Result<std::int64_t> CsvReader::number(std::size_t column, std::int64_t most) const {
  const std::string_view text = fields_[column];
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string what = std::string(header_[column]) + ": '" + std::string(text) + "' ";
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return error_at(column, what + "is not a whole number");
  if (error != std::errc{} || value < 0 || value > most)
    return error_at(column, what + "is not within 0 to " + std::to_string(most));
  return value;
}

Result<double> CsvReader::decimal(std::size_t column, double most) const {
  const std::string_view text = fields_[column];
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string what = std::string(header_[column]) + ": '" + std::string(text) + "' ";
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return error_at(column, what + "is not a number");
  // Written so that not-a-number fails too.
  if (error != std::errc{} || !(value >= 0 && value <= most))
    return error_at(column,
                    what + "is not within 0 to " + std::to_string(static_cast<std::int64_t>(most)));
  return value;
}

double CsvRow::decimal(std::size_t column, double most) {
  const Result<double> value = csv_.decimal(column, most);
  if (value) return *value;
  if (!error_) error_ = value.error();
  return 0;
}

std::int64_t CsvRow::number(std::size_t column, std::int64_t most) {
  const Result<std::int64_t> value = csv_.number(column, most);
  if (value) return *value;
  if (!error_) error_ = value.error();
  return 0;
}

}  // namespace aliquot::replay
