#include "inventory/sysfs.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestText = 1u << 16;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string Sysfs::bytes(const fs::path& file, std::size_t limit) const {
  std::ifstream in(root_ / file, std::ios::binary);
  std::string all(limit, '\0');
  in.read(all.data(), static_cast<std::streamsize>(limit));
  all.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return all;
}

std::optional<std::string> Sysfs::text(const fs::path& file) const {
  std::error_code ignored;
  if (!fs::is_regular_file(root_ / file, ignored)) return std::nullopt;
  std::string all = bytes(file, kLongestText);
  const std::size_t end = all.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return std::nullopt;
  all.resize(end + 1);
  return all;
}

std::optional<double> Sysfs::number(const fs::path& file) const {
  const auto all = text(file);
  if (!all) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(all->data(), all->data() + all->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::int64_t> Sysfs::whole(const fs::path& file) const {
  const auto all = text(file);
  if (!all) return std::nullopt;
  std::string_view digits = *all;
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::vector<std::string> Sysfs::list(const fs::path& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(root_ / directory, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename());
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    const bool numbers = is_number(a) && is_number(b);
    return numbers && a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

bool Sysfs::has(const fs::path& path) const {
  std::error_code ignored;
  return fs::exists(root_ / path, ignored);
}

std::optional<std::string> Sysfs::link_name(const fs::path& link) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ / link, error);
  if (error) return std::nullopt;
  return target.filename().string();
}

std::optional<fs::path> Sysfs::real(const fs::path& path) const {
  std::error_code error;
  const fs::path root = fs::canonical(root_, error);
  if (error) return std::nullopt;
  const fs::path found = fs::canonical(root_ / path, error);
  if (error) return std::nullopt;
  return found.lexically_relative(root);
}

}  // namespace aliquot::inventory
