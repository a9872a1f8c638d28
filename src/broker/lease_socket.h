// LeaseSocket: the socket of one lease, where its processes attach and settle.
//
// Whoever can reach the socket may send anything: a connection says one thing within its deadline
// or is closed; when too many say nothing the oldest goes; each turn accepts a bounded number. The
// connection of an attached process is kept as a hint that its image lives. Loop thread only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "broker/lease.h"
#include "broker/loop.h"
#include "wire/control.h"

namespace aliquot::broker {

struct SocketLimits {
  Nanoseconds silence = 2 * kSecond;  // until a connection must have said what it wants
  unsigned pending = 512;             // connections that have not been answered
  // Accepted between two calls of tidy(), four times a second. More than 300 programs that start at
  // once need, less than keeps the broker busy.
  unsigned accepts = 512;
};

class LeaseSocket {
 public:
  static Result<std::unique_ptr<LeaseSocket>> open(Lease& lease, Loop& loop, IdentityPath path,
                                                   SocketLimits limits);
  ~LeaseSocket();
  LeaseSocket(const LeaseSocket&) = delete;
  LeaseSocket& operator=(const LeaseSocket&) = delete;

  // Closes connections that have been silent for too long, listens again after a flood. Four times
  // a second.
  void tidy();
  std::size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    UniqueFd fd;
    Nanoseconds deadline = 0;  // 0: attached, kept as a hint
    int slot = -1;
    std::uint64_t nonce = 0;  // of a challenge that was sent; 0: none
    wire::TenantRequest request;
    std::unique_ptr<Peer> challenged;
  };
  using Connections = std::list<Connection>;  // oldest first

  LeaseSocket(Lease& lease, Loop& loop, IdentityPath path, SocketLimits limits);
  void accept_some();
  void serve(int fd);
  // False: close the connection.
  bool answer(Connection& connection, const wire::TenantRequest& request);
  bool attach(Connection& connection, Peer peer, std::uint64_t image);
  bool challenge(Connection& connection, Peer peer);
  static bool send_reply(Connection& connection, const wire::BrokerReply& reply,
                         std::span<const int> descriptors = {});
  void close(Connections::iterator connection);
  bool make_room();
  Status listen();
  void pause();

  Lease& lease_;
  Loop& loop_;
  IdentityPath path_;
  SocketLimits limits_;
  UniqueFd listener_;
  Connections connections_;
  std::unordered_map<int, Connections::iterator> by_fd_;
  std::size_t hints_ = 0;
  unsigned accepted_ = 0;  // since the last tidy()
  bool listening_ = false;
};

}  // namespace aliquot::broker
