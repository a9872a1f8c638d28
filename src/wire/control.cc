#include "wire/control.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace aliquot::wire {
namespace {

std::uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1000000;
}

void sleep_us(long us) {
  timespec t{0, us * 1000};
  nanosleep(&t, nullptr);
}

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

void say(char* reason, std::size_t size, const char* text) {
  if (reason == nullptr || size == 0) return;
  std::strncpy(reason, text, size - 1);
  reason[size - 1] = '\0';
}

struct Descriptors {
  int grant = -1, ledger = -1;
  void close_all() {
    if (grant >= 0) close(grant);
    if (ledger >= 0) close(ledger);
    grant = ledger = -1;
  }
};

// Connects blocking: a non-blocking connect to a full backlog leaves nothing to poll for. A path
// too long for sockaddr_un goes through a descriptor of the directory.
int connect_to(const char* directory, unsigned timeout_ms) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const timeval limit{static_cast<time_t>(timeout_ms / 1000),
                      static_cast<suseconds_t>(timeout_ms % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int through = -1;
  if (std::strlen(directory) + sizeof "/socket" > sizeof address.sun_path) {
    through = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", through);
  } else {
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
  }
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (through >= 0) close(through);
  if (rc == 0) return fd;
  close(fd);
  return -1;
}

bool send_request(int fd, const TenantRequest& request) {
  return send(fd, &request, sizeof request, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request);
}

void take_descriptors(msghdr& message, Descriptors& descriptors) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      if (descriptors.grant < 0) {
        descriptors.grant = fd;
      } else if (descriptors.ledger < 0) {
        descriptors.ledger = fd;
      } else {
        close(fd);
      }
    }
  }
}

bool receive_reply(int fd, BrokerReply& reply, Descriptors& descriptors) {
  iovec vector{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do {
    n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return false;
  take_descriptors(message, descriptors);
  reply.reason[sizeof reply.reason - 1] = '\0';
  return n == static_cast<ssize_t>(sizeof reply) && reply.magic == kControlMagic;
}

// One connection, one question; answers a challenge on the way. Returns the connection, or -1 when
// nobody answered: end of file and refusal alike mean that a broker has gone and another comes.
int ask_once(const char* directory, TenantRequest request, BrokerReply& reply,
             Descriptors& descriptors, unsigned timeout_ms) {
  const int fd = connect_to(directory, timeout_ms);
  if (fd < 0) return -1;
  for (int rounds = 0; rounds < 2; ++rounds) {
    if (!send_request(fd, request) || !receive_reply(fd, reply, descriptors)) break;
    if (reply.answer != Answer::kChallenge) return fd;
    request.ask = Ask::kAnswer;
    request.nonce = reply.nonce;
  }
  descriptors.close_all();
  close(fd);
  return -1;
}

int ask(const char* directory, const TenantRequest& request, BrokerReply& reply,
        Descriptors& descriptors, unsigned patience_ms) {
  const std::uint64_t start = now_ms();
  long pause_us = 200;
  for (;;) {
    const std::uint64_t spent = now_ms() - start;
    // All that is left: a broker that dies ends the wait by itself, and one that is slow must not
    // lose our place in its queue.
    const unsigned left = patience_ms > spent ? static_cast<unsigned>(patience_ms - spent) : 1;
    const int fd = ask_once(directory, request, reply, descriptors, left);
    if (fd >= 0 && reply.answer != Answer::kBusy) return fd;
    if (fd >= 0) {
      descriptors.close_all();
      close(fd);
    }
    if (now_ms() - start >= patience_ms) return -1;
    sleep_us(pause_us);
    if (pause_us < 5000) pause_us *= 2;
  }
}

// Never below `bytes`: a shorter file would turn a later access into SIGBUS.
bool is_at_least(int fd, std::size_t bytes) {
  const off_t end = lseek(fd, 0, SEEK_END);
  return end >= 0 && static_cast<std::size_t>(end) >= bytes;
}

bool map_all(const Descriptors& descriptors, int slot, Attachment& attachment) {
  if (!is_at_least(descriptors.grant, sizeof(Grant))) return false;
  void* page = mmap(nullptr, sizeof(Grant), PROT_READ, MAP_SHARED, descriptors.grant, 0);
  if (page == MAP_FAILED) return false;
  const auto* grant = static_cast<const Grant*>(page);
  if (is_valid(*grant) && slot >= 0 && static_cast<unsigned>(slot) < grant->slot_count) {
    const std::size_t bytes = LedgerView::size_bytes(grant->gpu_count, grant->slot_count);
    void* base =
        !is_at_least(descriptors.ledger, bytes)
            ? MAP_FAILED
            : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors.ledger, 0);
    if (base != MAP_FAILED) {
      attachment.slot = slot;
      attachment.grant = grant;
      attachment.ledger = LedgerView(base, grant->gpu_count, grant->slot_count);
      attachment.ledger_bytes = bytes;
      return true;
    }
  }
  munmap(page, sizeof(Grant));
  return false;
}

}  // namespace

std::uint64_t image_id() {
  std::uint64_t r[2] = {1, 2};
  const auto* at = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
  if (at != nullptr) std::memcpy(r, at, sizeof r);
  return (r[0] ^ (r[1] * 0x9E3779B97F4A7C15ull)) * 0xD6E8FEB86659FD93ull;
}

AttachResult attach(const char* directory, unsigned patience_ms, Attachment& attachment,
                    char* reason, std::size_t reason_size) {
  const KeepErrno keep;
  TenantRequest request;
  request.ask = Ask::kAttach;
  request.image = image_id();
  BrokerReply reply;
  Descriptors descriptors;
  const int fd = ask(directory, request, reply, descriptors, patience_ms);
  if (fd < 0) {
    say(reason, reason_size, "no broker answers on the lease's socket");
    return AttachResult::kNoBroker;
  }
  if (reply.answer != Answer::kDone) {
    say(reason, reason_size, reply.reason);
    descriptors.close_all();
    close(fd);
    return AttachResult::kRefused;
  }
  const bool mapped = map_all(descriptors, reply.slot, attachment);
  descriptors.close_all();
  if (!mapped) {
    say(reason, reason_size, "the lease's grant is of another version or damaged");
    close(fd);
    return AttachResult::kBadGrant;
  }
  attachment.connection = fd;
  return AttachResult::kAttached;
}

void forget(Attachment& attachment) {
  const KeepErrno keep;
  if (attachment.grant != nullptr) munmap(const_cast<Grant*>(attachment.grant), sizeof(Grant));
  if (attachment.ledger) munmap(&attachment.ledger.header(), attachment.ledger_bytes);
  if (attachment.connection >= 0) close(attachment.connection);
  attachment = Attachment{};
}

bool settle(const char* directory, unsigned patience_ms) {
  const KeepErrno keep;
  TenantRequest request;
  request.ask = Ask::kSettle;
  BrokerReply reply;
  Descriptors descriptors;
  const int fd = ask(directory, request, reply, descriptors, patience_ms);
  descriptors.close_all();
  if (fd < 0) return false;
  close(fd);
  return reply.answer == Answer::kDone;
}

}  // namespace aliquot::wire
