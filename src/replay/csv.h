// CSV as the traces have it: a header line that names the columns, commas, no quotes. Some have
// tabs and no header; their columns are named by the reader.
//
// Every error says file, line and column: "pods.csv:7:14: cpu_milli: 'x1' is not a whole number".
// Borrows the text; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace aliquot::replay {

class CsvReader {
 public:
  // Both are borrowed for the reader's life.
  CsvReader(std::string_view text, std::string_view file, char separator = ',');

  // Of a text without a header: the names of its columns.
  void name_columns(std::vector<std::string_view> names) { header_ = std::move(names); }

  // Reads the header, which must begin with exactly `required`, in this order.
  Status expect_header(const std::vector<std::string_view>& required);
  // Whether the header goes on after `required`, exactly with `more`. Invalid where otherwise.
  Result<bool> header_continues(const std::vector<std::string_view>& more);

  // Steps to the next line that is not blank; false at the end. Invalid where it has not as many
  // fields as the header.
  Result<bool> next();

  std::string_view field(std::size_t column) const { return fields_[column]; }
  // A whole number of at least 0 and at most `most`.
  Result<std::int64_t> number(std::size_t column, std::int64_t most) const;
  // The same as a decimal number, "6" or "6.25".
  Result<double> decimal(std::size_t column, double most) const;
  std::size_t line() const { return line_; }
  Error error_at(std::size_t column, const std::string& what) const;

 private:
  bool read_line();

  std::string_view rest_;
  std::string_view file_;
  char separator_;
  std::size_t line_ = 0;
  std::vector<std::string_view> header_;
  std::size_t required_ = 0;
  std::vector<std::string_view> fields_;
  std::string_view current_;
};

// Reads one line's numbers and keeps the first error, so that it is looked at once.
class CsvRow {
 public:
  explicit CsvRow(const CsvReader& csv) : csv_(csv) {}
  std::int64_t number(std::size_t column, std::int64_t most);
  double decimal(std::size_t column, double most);
  // Null: none.
  const Error* error() const { return error_ ? &*error_ : nullptr; }

 private:
  const CsvReader& csv_;
  std::optional<Error> error_;
};

}  // namespace aliquot::replay
