#include "broker/lease_socket.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "broker/listener.h"

namespace aliquot::broker {
namespace {

constexpr int kAcceptsAtOnce = 128;

wire::BrokerReply reply_of(wire::Answer answer, const std::string& reason = {}) {
  wire::BrokerReply reply;
  reply.answer = answer;
  std::strncpy(reply.reason, reason.c_str(), sizeof reply.reason - 1);
  return reply;
}

}  // namespace

LeaseSocket::LeaseSocket(Lease& lease, Loop& loop, IdentityPath path, SocketLimits limits)
    : lease_(lease), loop_(loop), path_(path), limits_(limits) {}

Result<std::unique_ptr<LeaseSocket>> LeaseSocket::open(Lease& lease, Loop& loop, IdentityPath path,
                                                       SocketLimits limits) {
  std::unique_ptr<LeaseSocket> socket(new LeaseSocket(lease, loop, path, limits));
  auto listener = listen_at(lease.files().tenant_directory() / "socket");
  if (!listener) return listener.error();
  socket->listener_ = std::move(*listener);
  if (const Status listening = socket->listen(); !listening) return listening.error();
  if (const Status added = loop.add(lease.deaths(), [&lease] { lease.reap(); }); !added)
    return added.error();
  return socket;
}

Status LeaseSocket::listen() {
  const Status added = loop_.add(listener_.get(), [this] { accept_some(); });
  listening_ = added.has_value();
  return added;
}

LeaseSocket::~LeaseSocket() {
  loop_.remove(listener_.get());
  loop_.remove(lease_.deaths());
  for (const Connection& connection : connections_) loop_.remove(connection.fd.get());
}

void LeaseSocket::accept_some() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // Out of descriptors: somebody must go, or else we listen again later instead of spinning.
      if ((errno == EMFILE || errno == ENFILE) && !make_room()) pause();
      return;
    }
    // Whoever else waits in the backlog of this lease is of this lease: others lose nothing.
    if (++accepted_ == limits_.accepts) {
      lease_.count_flood();
      pause();
      i = kAcceptsAtOnce;  // this one is still served
    }
    if (connections_.size() - hints_ >= limits_.pending) make_room();
    const int number = fd.get();
    connections_.emplace_back().fd = std::move(fd);
    connections_.back().deadline = loop_.now() + limits_.silence;
    by_fd_[number] = std::prev(connections_.end());
    if (!loop_.add(number, [this, number] { serve(number); })) close(by_fd_[number]);
  }
}

void LeaseSocket::pause() {
  loop_.remove(listener_.get());
  listening_ = false;
}

// The oldest unanswered connection goes: an honest one has said its request with its connect.
bool LeaseSocket::make_room() {
  const auto oldest =
      std::ranges::find_if(connections_, [](const Connection& c) { return c.deadline != 0; });
  if (oldest != connections_.end()) {
    close(oldest);
  } else if (!connections_.empty()) {
    close(connections_.begin());  // only a hint is lost
  } else {
    return false;
  }
  return true;
}

void LeaseSocket::close(Connections::iterator connection) {
  const int slot = connection->slot;
  loop_.remove(connection->fd.get());
  by_fd_.erase(connection->fd.get());
  hints_ -= connection->deadline == 0 ? 1 : 0;
  connections_.erase(connection);
  if (slot >= 0) lease_.connection_ended(static_cast<unsigned>(slot));
}

void LeaseSocket::tidy() {
  accepted_ = 0;
  const Nanoseconds now = loop_.now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto next = std::next(at);
    if (at->deadline != 0 && at->deadline < now) close(at);
    at = next;
  }
  if (!listening_) static_cast<void>(listen());
}

void LeaseSocket::serve(int fd) {
  const auto found = by_fd_.find(fd);
  if (found == by_fd_.end()) return;
  Connection& connection = *found->second;
  wire::TenantRequest request;
  // MSG_TRUNC: the true length, so that a longer message is not taken for a right one.
  const ssize_t n = recv(fd, &request, sizeof request, MSG_TRUNC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const bool whole =
      n == static_cast<ssize_t>(sizeof request) && request.magic == wire::kControlMagic;
  // An attached connection has nothing more to say: more is a fault, and its end is a hint.
  if (!whole || connection.deadline == 0 || !answer(connection, request)) close(found->second);
}

bool LeaseSocket::answer(Connection& connection, const wire::TenantRequest& request) {
  using wire::Answer, wire::Ask;
  if (request.version != wire::kControlVersion) {
    send_reply(connection,
               reply_of(Answer::kNoVersion,
                        "this broker speaks version " + std::to_string(wire::kControlVersion) +
                            " of the control messages, the library version " +
                            std::to_string(request.version) + "; install both from one release"));
    return false;
  }
  switch (request.ask) {
    case Ask::kSettle:
      lease_.reap();  // deaths known by now come first
      send_reply(connection, reply_of(Answer::kDone));
      return false;
    case Ask::kAttach: {
      if (connection.nonce != 0) return false;
      lease_.reap();
      auto peer = peer_of(connection.fd.get(), path_);
      if (!peer) return false;
      connection.request = request;
      if (peer->needs_challenge) return challenge(connection, std::move(*peer));
      return attach(connection, std::move(*peer), request.image);
    }
    case Ask::kAnswer:
      if (connection.nonce == 0 || request.nonce != connection.nonce || !connection.challenged)
        return false;
      // It spoke after its pidfd was opened: the pidfd is that of the peer, unless it ended since.
      if (!is_alive(connection.challenged->pidfd.get())) return false;
      return attach(connection, std::move(*connection.challenged), connection.request.image);
  }
  return false;
}

bool LeaseSocket::challenge(Connection& connection, Peer peer) {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return false;
  connection.nonce = nonce | 1;
  connection.challenged = std::make_unique<Peer>(std::move(peer));
  wire::BrokerReply reply = reply_of(wire::Answer::kChallenge);
  reply.nonce = connection.nonce;
  return send_reply(connection, reply);
}

bool LeaseSocket::attach(Connection& connection, Peer peer, std::uint64_t image) {
  const Lease::AttachAnswer given = lease_.attach(std::move(peer), image);
  wire::BrokerReply reply = reply_of(given.answer, given.reason);
  reply.slot = given.slot;
  if (given.answer != wire::Answer::kDone) {
    send_reply(connection, reply);
    return false;
  }
  const int descriptors[] = {lease_.files().grant_fd(), lease_.files().ledger_fd()};
  // Not taken: the slot stays with the process, which gets it again when it asks again.
  if (!send_reply(connection, reply, descriptors)) return false;
  connection.deadline = 0;
  connection.slot = given.slot;
  connection.challenged.reset();
  ++hints_;
  // Several connections of one image are possible; far more than slots are somebody's game.
  if (hints_ > std::size_t{2} * lease_.files().grant().slot_count) make_room();
  return true;
}

bool LeaseSocket::send_reply(Connection& connection, const wire::BrokerReply& reply,
                             std::span<const int> descriptors) {
  return send_message(connection.fd.get(), {reinterpret_cast<const char*>(&reply), sizeof reply},
                      descriptors);
}

}  // namespace aliquot::broker
