#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/unique_fd.h"

namespace aliquot {
namespace {

Errc code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Errc::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kDenied;
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EDQUOT:
      return Errc::kExhausted;
    case EINVAL:
    case EEXIST:
      return Errc::kInvalid;
    default:
      return Errc::kInternal;
  }
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Error errno_error(std::string_view what, const std::filesystem::path& path) {
  const int error = errno;
  return {code_of(error), std::string(what) + " " + path.string() + ": " + std::strerror(error)};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("read", path);
  std::string content;
  char buffer[64 << 10];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read", path);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > limit)
      return Error{Errc::kInvalid,
                   "read " + path.string() + ": longer than " + std::to_string(limit) + " bytes"};
  }
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             unsigned mode) {
  std::string beside = path.string() + ".XXXXXX";
  const UniqueFd fd(::mkostemp(beside.data(), O_CLOEXEC));
  if (!fd) return errno_error("write", path);
  if (!write_all(fd.get(), content) || ::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0 ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    Error error = errno_error("write", path);
    ::unlink(beside.c_str());
    return error;
  }
  return {};
}

Status make_directories(const std::filesystem::path& path, unsigned mode) {
  std::error_code code;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), code);
  if (code) return Error{code_of(code.value()), "make " + path.string() + ": " + code.message()};
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return errno_error("make", path);
  if (!std::filesystem::is_directory(path, code))
    return Error{Errc::kInvalid, "make " + path.string() + ": not a directory"};
  return {};
}

}  // namespace aliquot
