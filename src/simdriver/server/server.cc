#include "simdriver/server/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "common/pidfd.h"
#include "simdriver/channel/socket.h"
#include "simdriver/server/handlers.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; older headers lack the name
#endif

namespace aliquot::simdriver {
namespace {

// All of the host's time. While work is outstanding and nobody waits: often enough for rings not
// to fill unseen.
constexpr Nanoseconds kTick = 10 * kMillisecond;
// A timed wait returns late by this much (measured 21-25 us); the wait is cut short by it.
constexpr Nanoseconds kOvershoot = 20 * kMicrosecond;

constexpr unsigned kSourceBits = 3;

// The peer's process whatever happens to its number: from the socket where the kernel offers it.
UniqueFd peer_process(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return UniqueFd(fd);
  return open_pidfd(pid);
}

std::string program_name(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t size = readlink(link.c_str(), path.data(), path.size() - 1);
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

Server::Server(MachineState& machine, UniqueFd listener)
    : machine_(machine), listener_(std::move(listener)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Status Server::watch(int fd, Source source, SessionId session) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = session << kSourceBits | static_cast<std::uint64_t>(source);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return errno_error("epoll_ctl", "simulated device server");
  }
  return {};
}

Result<std::unique_ptr<Session>> Server::greet(UniqueFd socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return errno_error("SO_PEERCRED", "client");
  }
  auto session = std::make_unique<Session>();
  session->pid = peer.pid;
  session->uid = peer.uid;
  session->program = program_name(peer.pid);
  session->process = peer_process(socket.get(), peer.pid);
  session->doorbell.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  session->socket = std::move(socket);
  if (!session->process || !session->doorbell) return errno_error("pidfd or eventfd", "client");
  return session;
}

void Server::accept_all() {
  for (;;) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    auto greeted = greet(std::move(socket));
    if (!greeted) continue;  // it went before we looked
    Session& session = machine_.add_session(std::move(*greeted));
    const bool watched = watch(session.socket.get(), Source::kSocket, session.id) &&
                         watch(session.process.get(), Source::kProcess, session.id) &&
                         watch(session.doorbell.get(), Source::kBell, session.id);
    if (!watched) machine_.end_session(session.id);
  }
}

bool Server::answer(Session& session) {
  Result<Datagram> request = receive_datagram(session.socket.get());
  if (!request) return request.error().code == Errc::kExhausted;
  if (request->bytes.empty()) return false;
  RequestHeader header{};
  if (request->bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, request->bytes.data(), sizeof(header));
  const auto payload = std::span<const std::byte>(request->bytes).subspan(sizeof(header));
  if (header.payload_bytes != payload.size()) return false;

  machine_.catch_up();
  // What was closed before it asked is free by then.
  if (machine_.exports().size() != 0) machine_.end_closed_exports();
  Call call{machine_, session, header.op, payload, request->fds, {}, {}, 0};
  const std::int32_t result = handle(call);
  std::vector<std::byte> bytes(sizeof(ReplyHeader) + call.reply.size());
  const ReplyHeader reply{result, static_cast<std::uint32_t>(call.reply.size()), call.cost_ns};
  std::memcpy(bytes.data(), &reply, sizeof(reply));
  std::ranges::copy(call.reply, bytes.begin() + sizeof(reply));
  // Who does not read its answers is not waited for.
  return send_datagram(session.socket.get(), bytes, call.reply_fds).has_value();
}

void Server::on_bell(Session& session) {
  std::uint64_t rings = 0;
  // Nothing to do with the count: the rings themselves are read on every wake.
  [[maybe_unused]] const ssize_t got = read(session.doorbell.get(), &rings, sizeof(rings));
}

void Server::on_ready(std::uint64_t tag) {
  const auto source = static_cast<Source>(tag & ((1u << kSourceBits) - 1));
  if (source == Source::kListener) return accept_all();
  if (source == Source::kStop) {
    stopped_ = true;
    return;
  }
  if (source == Source::kExports) return machine_.end_closed_exports();
  const auto found = machine_.sessions().find(tag >> kSourceBits);
  if (found == machine_.sessions().end()) return;
  Session& session = *found->second;
  switch (source) {
    case Source::kBell:
      return on_bell(session);
    case Source::kSocket:
      if (answer(session)) return;
      break;
    default:
      break;
  }
  // The end of a connection or of its process. What it had published counts, then all is freed.
  machine_.catch_up();
  machine_.end_session(session.id);
}

// How long to sleep: to the next moment that matters. -1: until something happens.
int Server::wait_ms_or_ns(timespec& wait) {
  const MachineClock& clock = machine_.clock();
  const Nanoseconds now = clock.host_now();
  const auto look = machine_.next_look();
  Nanoseconds until = -1;
  if (look) until = std::max<Nanoseconds>(clock.host_time(*look) - now - kOvershoot, 0);
  const bool recent = now - last_activity_ns_ < kSecond;
  if (!machine_.contexts().empty() && recent && (until < 0 || until > kTick)) until = kTick;
  if (machine_.has_work() && (until < 0 || until > 100 * kMillisecond)) {
    until = 100 * kMillisecond;
  }
  if (until < 0) return -1;
  wait = {until / kSecond, until % kSecond};
  return 0;
}

Status Server::run(int stop_fd) {
  if (!epoll_) return errno_error("epoll_create1", "simulated device server");
  prctl(PR_SET_TIMERSLACK, 1);
  if (Status watched = watch(listener_.get(), Source::kListener, 0); !watched) return watched;
  if (Status watched = watch(machine_.exports().fd(), Source::kExports, 0); !watched)
    return watched;
  if (stop_fd >= 0) {
    if (Status watched = watch(stop_fd, Source::kStop, 0); !watched) return watched;
  }
  while (!stopped_ && !machine_.stop_requested) {
    machine_.catch_up();
    machine_.publish();
    timespec wait{};
    const bool bounded = wait_ms_or_ns(wait) == 0;
    std::array<epoll_event, 64> ready{};
    const int count =
        static_cast<int>(syscall(SYS_epoll_pwait2, epoll_.get(), ready.data(), ready.size(),
                                 bounded ? &wait : nullptr, nullptr, 0));
    if (count < 0 && errno != EINTR) return errno_error("epoll_pwait2", "simulated device server");
    if (count > 0) last_activity_ns_ = machine_.clock().host_now();
    for (int i = 0; i < count; ++i) on_ready(ready[static_cast<std::size_t>(i)].data.u64);
  }
  return {};
}

}  // namespace aliquot::simdriver
