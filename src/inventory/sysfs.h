// Sysfs: short files and links below one root, so that a test can lay out a machine of its own.
//
// Absent and unreadable are the same: nullopt or empty, never an error; what a machine does not
// tell is no fault of it. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aliquot::inventory {

class Sysfs {
 public:
  explicit Sysfs(std::filesystem::path root = "/sys") : root_(std::move(root)) {}

  // The whole file without trailing white space. Entries that answer an error (a GID that is not
  // set) are nullopt.
  std::optional<std::string> text(const std::filesystem::path& file) const;
  // The leading number of the file: "32.0 GT/s PCIe" is 32, "0x10de" is 4318, "-1" is -1.
  std::optional<double> number(const std::filesystem::path& file) const;
  std::optional<std::int64_t> whole(const std::filesystem::path& file) const;
  // Names in a directory, in order; numbers count as numbers ("9" before "10").
  std::vector<std::string> list(const std::filesystem::path& directory) const;
  bool has(const std::filesystem::path& path) const;
  // The last component of what a link points to: the driver's name behind "device/driver".
  std::optional<std::string> link_name(const std::filesystem::path& link) const;
  // Where a link leads in the end, relative to the root.
  std::optional<std::filesystem::path> real(const std::filesystem::path& path) const;
  // At most `limit` bytes of a binary file.
  std::string bytes(const std::filesystem::path& file, std::size_t limit) const;

 private:
  std::filesystem::path root_;
};

}  // namespace aliquot::inventory
