#include "broker/identity.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/pidfd.h"

// Debian 12's headers predate both.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace aliquot::broker {
namespace {

// Every pidfd of a pidfs has its own inode number; before that they all shared one anonymous inode.
std::uint64_t inode_of(int pidfd) {
  struct stat st{};
  return fstat(pidfd, &st) == 0 ? st.st_ino : 0;
}

Result<Peer> complete(Peer peer) {
  const auto stat = process_stat(peer.identity.pid);
  if (!stat) return stat.error();
  peer.stat = *stat;
  peer.identity.start_time = stat->start_time;
  if (!is_alive(peer.pidfd.get()))
    return Error{Errc::kNotFound, "identify a peer: it has ended meanwhile"};
  return peer;
}

Result<Peer> by_pidfs(int connection, const ucred& credentials) {
  Peer peer;
  int fd = -1;
  socklen_t length = sizeof fd;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) != 0)
    return errno_error("identify a peer by", "SO_PEERPIDFD");
  peer.pidfd.reset(fd);
  peer.uid = credentials.uid;
  peer.identity.inode = inode_of(fd);
  // The kernel takes both from the process that connected, so the number is the pidfd's.
  peer.identity.pid = credentials.pid;
  if (peer.identity.pid <= 0)
    return Error{Errc::kNotFound, "identify a peer: it is not visible in this pid namespace"};
  return complete(std::move(peer));
}

Result<Peer> by_credentials(const ucred& credentials) {
  Peer peer;
  peer.needs_challenge = true;
  peer.uid = credentials.uid;
  peer.identity.pid = credentials.pid;
  if (credentials.pid <= 0)
    return Error{Errc::kNotFound, "identify a peer: it is not visible in this pid namespace"};
  peer.pidfd = open_pidfd(credentials.pid);
  if (!peer.pidfd) return errno_error("identify a peer by", "pidfd_open");
  return complete(std::move(peer));
}

}  // namespace

IdentityPath best_identity_path() {
  static const IdentityPath path = [] {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return IdentityPath::kCredentials;
    const UniqueFd one(pair[0]), two(pair[1]);
    int fd = -1;
    socklen_t length = sizeof fd;
    if (getsockopt(one.get(), SOL_SOCKET, SO_PEERPIDFD, &fd, &length) != 0)
      return IdentityPath::kCredentials;
    const UniqueFd self(fd), parent = open_pidfd(getppid());
    // Inside a pid namespace the parent may be invisible; init of the namespace is always there.
    const UniqueFd other = parent ? UniqueFd() : open_pidfd(1);
    const int second = parent ? parent.get() : other.get();
    return second >= 0 && inode_of(self.get()) != inode_of(second) ? IdentityPath::kPidfs
                                                                   : IdentityPath::kCredentials;
  }();
  return path;
}

Result<Peer> peer_of(int connection, IdentityPath path) {
  if (path == IdentityPath::kAuto) path = best_identity_path();
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return errno_error("identify a peer by", "SO_PEERCRED");
  return path == IdentityPath::kPidfs ? by_pidfs(connection, credentials)
                                      : by_credentials(credentials);
}

Result<UniqueFd> find_process(const ProcessIdentity& identity) {
  UniqueFd fd = open_pidfd(identity.pid);
  if (!fd) return errno_error("find process", std::to_string(identity.pid));
  const auto stat = process_stat(identity.pid);
  const bool same = identity.inode != 0 ? inode_of(fd.get()) == identity.inode
                                        : stat && stat->start_time == identity.start_time;
  if (!same || !is_alive(fd.get()))
    return Error{Errc::kNotFound, "find process " + std::to_string(identity.pid) +
                                      ": it has ended, another one wears its number"};
  return fd;
}

bool is_alive(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return poll(&p, 1, 0) == 0;
}

Result<ProcessStat> process_stat(std::int32_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return text.error();
  // "pid (any name) state ppid ...": a name may hold anything, so count from the last bracket.
  std::size_t at = text->rfind(')');
  if (at == std::string::npos)
    return Error{Errc::kInternal, "read /proc/" + std::to_string(pid) + "/stat: no name in it"};
  ProcessStat stat;
  const char* end = text->data() + text->size();
  const char* p = text->data() + at + 1;
  for (int field = 3; p < end && field <= 28; ++field) {
    while (p < end && *p == ' ') ++p;
    if (field == 4) std::from_chars(p, end, stat.parent);
    if (field == 22) std::from_chars(p, end, stat.start_time);
    if (field == 28) std::from_chars(p, end, stat.start_stack);
    p = std::find(p, end, ' ');
  }
  if (stat.start_stack < 4096) stat.start_stack = 0;  // 0 or 1: hidden
  return stat;
}

std::uint64_t namespace_of(std::int32_t pid, const char* name) {
  struct stat st{};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/" + name;
  return ::stat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

std::uint64_t own_namespace(const char* name) {
  static const std::uint64_t mount = namespace_of(getpid(), "mnt");
  static const std::uint64_t pid = namespace_of(getpid(), "pid");
  return std::strcmp(name, "mnt") == 0 ? mount : pid;
}

std::int32_t innermost_pid(std::int32_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status", 8192);
  if (!status) return pid;
  const std::size_t line = status->find("\nNSpid:");
  if (line == std::string::npos) return pid;
  const std::size_t end = status->find('\n', line + 1);
  const std::size_t last = status->find_last_of(" \t", end);
  const int number = std::atoi(status->c_str() + last + 1);
  return number > 0 ? number : pid;
}

BootId boot_id() {
  BootId id;
  if (const auto text = read_file("/proc/sys/kernel/random/boot_id", 64); text) {
    std::string hex;
    std::copy_if(text->begin(), text->end(), std::back_inserter(hex),
                 [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (hex.size() == 32) {
      std::from_chars(hex.data(), hex.data() + 16, id.words[0], 16);
      std::from_chars(hex.data() + 16, hex.data() + 32, id.words[1], 16);
    }
  }
  return id;
}

}  // namespace aliquot::broker
