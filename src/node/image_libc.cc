#include "node/image_libc.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/files.h"
#include "common/unique_fd.h"
#include "format/json.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;
using format::Json;

// Where glibc's loader is named by programs (its ABI), and where distributions keep it.
constexpr std::array kLoaders{"lib64/ld-linux-x86-64.so.2",
                              "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                              "usr/lib64/ld-linux-x86-64.so.2",
                              "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                              "lib/ld-linux-x86-64.so.2",
                              "lib/ld-linux-aarch64.so.1",
                              "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"};
constexpr std::size_t kLargestConfig = 4u << 20;

const std::string* text_at(const Json& object, const char* key) {
  const Json* value = object.find(key);
  return value != nullptr ? value->if_string() : nullptr;
}

}  // namespace

ImageLibc libc_of(const fs::path& root) {
  const UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return ImageLibc::kUnknown;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  for (const char* loader : kLoaders) {
    const UniqueFd found(
        static_cast<int>(::syscall(SYS_openat2, directory.get(), loader, &how, sizeof how)));
    if (found) return ImageLibc::kGlibc;
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return ImageLibc::kUnknown;
  }
  return ImageLibc::kOther;
}

fs::path root_of_state(const std::string& state_json) {
  const auto state = format::parse_json(state_json, "the container's state");
  const std::string* bundle = state ? text_at(*state, "bundle") : nullptr;
  if (bundle == nullptr) return {};
  const auto text = read_file(fs::path(*bundle) / "config.json", kLargestConfig);
  const auto config = text ? format::parse_json(*text, "config.json") : text.error();
  const Json* root = config ? config->find("root") : nullptr;
  const std::string* path = root != nullptr ? text_at(*root, "path") : nullptr;
  return path != nullptr ? fs::path(*bundle) / *path : fs::path();
}

}  // namespace aliquot::node
