#include "broker/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/files.h"

namespace aliquot::broker {
namespace {

namespace fs = std::filesystem;

constexpr int kBacklog = 4096;  // the kernel lowers it to net.core.somaxconn
constexpr std::size_t kMostDescriptors = 4;

// Socket paths are short (108 bytes); a long one goes through a descriptor of its directory.
struct SocketAddress {
  UniqueFd directory;
  sockaddr_un address{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<SocketAddress> address_of(const fs::path& path) {
  SocketAddress result;
  result.address.sun_family = AF_UNIX;
  std::string name = path.string();
  if (name.size() >= sizeof result.address.sun_path) {
    result.directory.reset(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!result.directory) return errno_error("open", path.parent_path());
    name =
        "/proc/self/fd/" + std::to_string(result.directory.get()) + "/" + path.filename().string();
    if (name.size() >= sizeof result.address.sun_path)
      return Error{Errc::kInvalid, "use socket " + path.string() + ": its name is too long"};
  }
  std::memcpy(result.address.sun_path, name.c_str(), name.size() + 1);
  return result;
}

}  // namespace

Result<UniqueFd> listen_at(const fs::path& path) {
  const fs::path beside = path.parent_path() / ("." + path.filename().string());
  auto address = address_of(beside);
  if (!address) return address.error();
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("make a socket for", path);
  ::unlink(beside.c_str());
  if (bind(fd.get(), address->get(), sizeof address->address) != 0 ||
      ::chmod(beside.c_str(), 0666) != 0 || listen(fd.get(), kBacklog) != 0 ||
      ::rename(beside.c_str(), path.c_str()) != 0)
    return errno_error("listen at", path);
  return fd;
}

Result<UniqueFd> connect_to(const fs::path& path, int timeout_ms) {
  auto address = address_of(path);
  if (!address) return address.error();
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error("make a socket for", path);
  const timeval limit{timeout_ms / 1000, static_cast<suseconds_t>(timeout_ms % 1000 * 1000)};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd.get(), address->get(), sizeof address->address) != 0) {
    Error error = errno_error("connect to", path);
    error.code = Errc::kUnavailable;
    return error;
  }
  return fd;
}

bool send_message(int socket, std::span<const char> message, std::span<const int> descriptors) {
  iovec vector{const_cast<char*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(message.size());
}

}  // namespace aliquot::broker
