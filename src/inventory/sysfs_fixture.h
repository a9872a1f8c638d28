// A /sys of a test's own making, in a directory that is removed after it. One thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "inventory/sysfs.h"

namespace aliquot::inventory {

class SysfsFixture {
 public:
  SysfsFixture() {
    std::string name = std::filesystem::temp_directory_path() / "aliquot-sys-XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~SysfsFixture() { std::filesystem::remove_all(root_); }
  SysfsFixture(const SysfsFixture&) = delete;
  SysfsFixture& operator=(const SysfsFixture&) = delete;

  Sysfs sys() const { return Sysfs(root_); }
  std::filesystem::path path(const std::filesystem::path& of) const { return root_ / of; }

  void file(const std::filesystem::path& path, std::string_view content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
  }
  void link(const std::filesystem::path& path, const std::filesystem::path& to) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_directories(root_ / to);
    std::filesystem::create_symlink(root_ / to, root_ / path);
  }

  // A PCI device at the end of a chain of ports, "pci0000:00/0000:00:01.0/0000:01:00.0".
  std::filesystem::path pci(std::string_view chain, std::string_view klass, std::string_view vendor,
                            int numa) const {
    const std::filesystem::path at = std::filesystem::path("devices") / chain;
    file(at / "class", std::string(klass) + "\n");
    file(at / "vendor", std::string(vendor) + "\n");
    file(at / "device", "0x20b2\n");
    file(at / "numa_node", std::to_string(numa) + "\n");
    link(std::filesystem::path("bus/pci/devices") / at.filename(), at);
    return at;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace aliquot::inventory
