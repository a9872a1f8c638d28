#include "simdriver/channel/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/files.h"
#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {
namespace {

// sun_path holds 107 bytes; a deeper directory is reached through a descriptor of it.
struct Address {
  sockaddr_un un{};
  UniqueFd directory;
};

Result<Address> address_of(const std::filesystem::path& path) {
  Address address;
  address.un.sun_family = AF_UNIX;
  std::string text = path.string();
  if (text.size() >= sizeof(address.un.sun_path)) {
    address.directory.reset(open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.directory) return errno_error("open", path.parent_path());
    text =
        "/proc/self/fd/" + std::to_string(address.directory.get()) + "/" + path.filename().string();
  }
  if (text.size() >= sizeof(address.un.sun_path)) {
    return Error{Errc::kInvalid, "socket " + path.string() + ": the file name is too long"};
  }
  std::memcpy(address.un.sun_path, text.c_str(), text.size() + 1);
  return address;
}

const sockaddr* raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.un);
}

}  // namespace

Result<UniqueFd> listen_at(const std::filesystem::path& path) {
  Result<Address> address = address_of(path);
  if (!address) return address.error();
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("socket", path);
  unlink(path.c_str());
  if (bind(fd.get(), raw(*address), sizeof(sockaddr_un)) != 0) return errno_error("bind", path);
  if (listen(fd.get(), 512) != 0) return errno_error("listen", path);
  return fd;
}

Result<UniqueFd> connect_to(const std::filesystem::path& path) {
  Result<Address> address = address_of(path);
  if (!address) return address.error();
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error("socket", path);
  while (connect(fd.get(), raw(*address), sizeof(sockaddr_un)) != 0) {
    if (errno != EINTR) return errno_error("connect", path);
  }
  return fd;
}

Status send_datagram(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    const Errc code = errno == EAGAIN ? Errc::kExhausted : Errc::kUnavailable;
    return Error{code, std::string("send to the other end: ") + std::strerror(errno)};
  }
  return {};
}

Result<Datagram> receive_datagram(int socket) {
  Datagram datagram;
  datagram.bytes.resize(kMaxMessageBytes);
  iovec part{datagram.bytes.data(), datagram.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = -1;
  while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    const Errc code = errno == EAGAIN ? Errc::kExhausted : Errc::kUnavailable;
    return Error{code, std::string("receive from the other end: ") + std::strerror(errno)};
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      datagram.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error{Errc::kInvalid, "receive from the other end: an oversized datagram"};
  }
  datagram.bytes.resize(static_cast<std::size_t>(got));
  return datagram;
}

}  // namespace aliquot::simdriver
