// A table for people: columns as wide as their widest cell, numbers to the right. Values; any
// thread.
#pragma once

#include <string>
#include <vector>

namespace aliquot::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column; missing cells are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Title line and rows, no trailing blanks. Cells are taken as UTF-8, one column a code point.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace aliquot::cli
