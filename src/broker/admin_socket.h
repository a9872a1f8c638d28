// AdminSocket: the socket through which leases are created, changed and listed.
//
// Open to the broker's own user and to root only, or to everyone: then each user changes and joins
// his own leases, all are listed, and ending the broker is for its own user and root. A connection
// may ask many questions, one at a time; a creation that waits for room holds its answer back.
// Whoever waits is tried in the order of asking whenever room may have come; one that fits goes
// before an earlier one that does not. Loop thread only. docs/formats/broker.md.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "broker/book.h"
#include "broker/codec.h"
#include "broker/loop.h"

namespace aliquot::broker {

enum class Audience { kOwner, kEveryone };

class AdminSocket {
 public:
  struct Options {
    std::filesystem::path path;
    IdentityPath identity = IdentityPath::kAuto;
    Audience audience = Audience::kOwner;
    int inherited =
        -1;  // a listening socket that somebody made at `path` for us; ours from here on
    std::function<void()> shutdown;
    std::function<std::vector<NoteRow>()> notes;  // may be empty
  };
  static Result<std::unique_ptr<AdminSocket>> open(Options options, Book& book, Loop& loop);
  ~AdminSocket();
  AdminSocket(const AdminSocket&) = delete;
  AdminSocket& operator=(const AdminSocket&) = delete;

  // Creations that wait are tried again. After every change, and a few times a second.
  void try_waiting();
  std::size_t connections() const { return connections_.size(); }

 private:
  struct Waiting {
    int fd;
    LeaseRequest request;
    Peer runner;
  };

  AdminSocket(Options options, Book& book, Loop& loop)
      : options_(std::move(options)), book_(book), loop_(loop) {}
  void accept_some();
  void serve(int fd);
  // False: close the connection.
  bool answer(int fd, const AdminHeader& header, std::string_view body);
  bool create(int fd, std::string_view body);
  bool join(int fd, std::string_view body);
  bool set_share(int fd, std::string_view body);
  bool set_gpu(int fd, std::string_view body);
  // The connection's user may change what belongs to this lease.
  Status may_change(int fd, const std::string& lease);
  bool list(int fd, std::string_view body);
  void close(int fd);

  Options options_;
  Book& book_;
  Loop& loop_;
  UniqueFd listener_;
  struct Connection {
    UniqueFd fd;
    uid_t uid;
  };
  std::unordered_map<int, Connection> connections_;
  std::list<Waiting> waiting_;
};

}  // namespace aliquot::broker
