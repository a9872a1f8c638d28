#include "broker/admin_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "broker/listener.h"

namespace aliquot::broker {
namespace {

constexpr int kAcceptsAtOnce = 64;
constexpr std::size_t kMostConnections = 2048;
// Of one user but root, so that none keeps the others out. A waiting `aliquot run` holds one.
constexpr std::size_t kMostOfAUser = 512;
constexpr std::size_t kMostWaiting = 1024;
// A list comes in pages of so many bytes, so that no message grows beyond what a socket takes.
constexpr std::size_t kPageBytes = 64u << 10;

bool send_reply(int fd, Verb verb, const std::string& body) {
  AdminHeader header;
  header.verb = verb;
  std::string message(reinterpret_cast<const char*>(&header), sizeof header);
  message += body;
  return send_message(fd, message);
}

bool send_error(int fd, const Error& error) {
  return send_reply(fd, Verb::kFailed, encoded(error));
}

template <typename T>
bool send_result(int fd, Verb verb, const Result<T>& result) {
  return result ? send_reply(fd, verb, encoded(*result)) : send_error(fd, result.error());
}

// Nobody: a uid that is never ours.
constexpr uid_t kNobody = ~uid_t{0};

uid_t peer_uid(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 ? credentials.uid
                                                                             : kNobody;
}

bool is_owner(int fd) {
  const uid_t uid = peer_uid(fd);
  return uid == 0 || uid == geteuid();
}

bool send_malformed(int fd) {
  return send_error(fd, {Errc::kInvalid,
                         "read a request: it is malformed; are the program and the "
                         "broker of one version?"});
}

}  // namespace

Result<std::unique_ptr<AdminSocket>> AdminSocket::open(Options options, Book& book, Loop& loop) {
  std::unique_ptr<AdminSocket> socket(new AdminSocket(std::move(options), book, loop));
  AdminSocket* self = socket.get();
  if (const int inherited = self->options_.inherited; inherited >= 0) {
    self->listener_.reset(inherited);
    fcntl(inherited, F_SETFD, FD_CLOEXEC);
    fcntl(inherited, F_SETFL, O_NONBLOCK);
  } else {
    auto listener = listen_at(self->options_.path);
    if (!listener) return listener.error();
    self->listener_ = std::move(*listener);
  }
  if (const Status added = loop.add(self->listener_.get(), [self] { self->accept_some(); }); !added)
    return added.error();
  return socket;
}

AdminSocket::~AdminSocket() {
  loop_.remove(listener_.get());
  for (const auto& [number, fd] : connections_) loop_.remove(number);
}

void AdminSocket::accept_some() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (connections_.size() >= kMostConnections) continue;
    if (options_.audience == Audience::kOwner && !is_owner(fd.get())) continue;
    const uid_t uid = peer_uid(fd.get());
    const auto of_user =
        std::ranges::count(connections_, uid, [](const auto& one) { return one.second.uid; });
    if (uid != 0 && static_cast<std::size_t>(of_user) >= kMostOfAUser) continue;
    const int number = fd.get();
    if (!loop_.add(number, [this, number] { serve(number); })) continue;
    connections_[number] = {std::move(fd), uid};
  }
}

void AdminSocket::close(int fd) {
  loop_.remove(fd);
  waiting_.remove_if([fd](const Waiting& waiting) { return waiting.fd == fd; });
  connections_.erase(fd);
}

void AdminSocket::serve(int fd) {
  std::vector<char> message(kLargestMessage);
  const ssize_t n = recv(fd, message.data(), message.size(), MSG_TRUNC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  AdminHeader header;
  if (n < static_cast<ssize_t>(sizeof header) || n > static_cast<ssize_t>(message.size()))
    return close(fd);
  std::memcpy(&header, message.data(), sizeof header);
  const std::string_view body(message.data() + sizeof header,
                              static_cast<std::size_t>(n) - sizeof header);
  if (header.magic != kAdminMagic || !answer(fd, header, body)) close(fd);
}

bool AdminSocket::answer(int fd, const AdminHeader& header, std::string_view body) {
  if (header.version != kAdminVersion)
    return send_error(
        fd,
        {Errc::kInvalid, "talk to the broker: it speaks version " + std::to_string(kAdminVersion) +
                             ", the program version " + std::to_string(header.version) +
                             "; end the old broker when its leases are done"});
  // Every `aliquot run` asks for bypasses all the time: the Book measures once a second by itself.
  if (header.verb != Verb::kBypasses) book_.measure_again();
  switch (header.verb) {
    case Verb::kCreate:
      return create(fd, body);
    case Verb::kJoin:
      return join(fd, body);
    case Verb::kList:
      return list(fd, body);
    case Verb::kGet: {
      std::string name;
      return decode(body, name) ? send_result(fd, header.verb, book_.row(name))
                                : send_malformed(fd);
    }
    case Verb::kRoom: {
      std::string driver;
      return decode(body, driver) ? send_result(fd, header.verb, book_.room(driver))
                                  : send_malformed(fd);
    }
    case Verb::kBypasses:
      return send_reply(fd, header.verb, encoded(book_.bypasses()));
    case Verb::kNotes:
      return send_reply(fd, header.verb,
                        encoded(options_.notes ? options_.notes() : std::vector<NoteRow>()));
    case Verb::kSetShare:
      return set_share(fd, body);
    case Verb::kSetGpu:
      return set_gpu(fd, body);
    case Verb::kGpus: {
      std::string driver;
      return decode(body, driver) ? send_result(fd, header.verb, book_.gpu_settings(driver))
                                  : send_malformed(fd);
    }
    case Verb::kShutdown:
      if (!is_owner(fd))
        return send_error(fd,
                          {Errc::kDenied, "end the broker: it serves all users; only root may"});
      send_reply(fd, header.verb, {});
      options_.shutdown();
      return false;
    case Verb::kFailed:
      break;
  }
  return send_malformed(fd);
}

bool AdminSocket::set_share(int fd, std::string_view body) {
  ShareChange change;
  if (!decode(body, change)) return send_malformed(fd);
  Status done = may_change(fd, change.compute.lease);
  if (done) done = book_.set_shares({change});
  return done ? send_reply(fd, Verb::kSetShare, {}) : send_error(fd, done.error());
}

bool AdminSocket::set_gpu(int fd, std::string_view body) {
  GpuChange change;
  if (!decode(body, change)) return send_malformed(fd);
  if (!is_owner(fd))
    return send_error(fd, {Errc::kDenied,
                           "set gpu " + change.gpu + ": it is shared by all users; only root may"});
  const Status done = book_.set_gpu(change);
  return done ? send_reply(fd, Verb::kSetGpu, {}) : send_error(fd, done.error());
}

Status AdminSocket::may_change(int fd, const std::string& lease) {
  if (is_owner(fd)) return {};
  const auto owner = book_.owner_of(lease);
  if (!owner) return owner.error();
  if (*owner == peer_uid(fd)) return {};
  return Error{Errc::kDenied, "change lease " + lease + ": it belongs to another user (uid " +
                                  std::to_string(*owner) + ")"};
}

bool AdminSocket::create(int fd, std::string_view body) {
  LeaseRequest request;
  if (!decode(body, request)) return send_malformed(fd);
  auto runner = peer_of(fd, options_.identity);
  if (!runner) return false;
  if (!request.wait)
    return send_result(fd, Verb::kCreate, book_.create(request, std::move(*runner)));
  if (waiting_.size() >= kMostWaiting)
    return send_error(fd, {Errc::kExhausted, "wait for room: " + std::to_string(kMostWaiting) +
                                                 " others wait already"});
  waiting_.push_back({fd, std::move(request), std::move(*runner)});
  try_waiting();
  return true;
}

void AdminSocket::try_waiting() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Peer runner{at->runner.identity, at->runner.stat, UniqueFd(dup(at->runner.pidfd.get())),
                at->runner.uid, false};
    const auto granted = book_.create(at->request, std::move(runner));
    if (!granted && granted.error().code == Errc::kExhausted) {
      ++at;
      continue;
    }
    send_result(at->fd, Verb::kCreate, granted);
    at = waiting_.erase(at);
  }
}

bool AdminSocket::join(int fd, std::string_view body) {
  std::string name;
  if (!decode(body, name)) return send_malformed(fd);
  auto runner = peer_of(fd, options_.identity);
  if (!runner) return false;
  if (const Status may = may_change(fd, name); !may) return send_error(fd, may.error());
  return send_result(fd, Verb::kJoin, book_.join(name, std::move(*runner)));
}

bool AdminSocket::list(int fd, std::string_view body) {
  std::string after;
  if (!decode(body, after)) return send_malformed(fd);
  LeasePage page;
  std::size_t bytes = 0;
  for (;;) {
    std::vector<LeaseRow> next = book_.rows_after(after, 1);
    if (next.empty()) break;
    bytes += encoded(next.front()).size();
    if (bytes > kPageBytes && !page.rows.empty()) {
      page.more = true;
      break;
    }
    after = next.front().name;
    page.rows.push_back(std::move(next.front()));
  }
  return send_reply(fd, Verb::kList, encoded(page));
}

}  // namespace aliquot::broker
