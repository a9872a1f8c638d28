#include "node/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "common/clock.h"
#include "common/files.h"

namespace aliquot::node {
namespace {

// A process that does not die at once is inside the driver: it is left to init.
constexpr int kWaitTries = 50;
constexpr int kWaitPauseMs = 2;
constexpr int kStopLookMs = 100;
constexpr std::size_t kLargestOutput = 4u << 20;

struct Pipe {
  UniqueFd out, in;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make", "a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& words) {
  // A socket, so that writing to one that has ended is an error and no signal.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error("make", "a socket pair");
  UniqueFd to(ends[0]);
  const UniqueFd its(ends[1]);
  auto from = make_pipe();
  if (!from) return from.error();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from->in.get(), STDOUT_FILENO);
  // Signals that the daemon blocks or handles are the child's own affair.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ChildProcess child;
  const int error =
      ::posix_spawn(&child.pid_, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    child.pid_ = -1;
    return Error{Errc::kUnavailable, "start " + words[0] + ": " + std::strerror(error)};
  }
  child.input_ = std::move(to);
  child.output_ = std::move(from->out);
  ::fcntl(child.output_.get(), F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  return *this;
}

bool ChildProcess::send(char byte) const {
  return ::send(input_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool ChildProcess::has_ended() {
  if (pid_ < 0) return true;
  if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

void ChildProcess::kill_now() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void ChildProcess::end() {
  input_.reset();
  kill_now();
  for (int i = 0; i < kWaitTries && !has_ended(); ++i) ::poll(nullptr, 0, kWaitPauseMs);
}

Result<std::string> output_of(const std::vector<std::string>& words, int limit_ms,
                              const std::atomic<bool>* stop) {
  auto child = ChildProcess::start(words);
  if (!child) return child.error();
  const MonotonicClock clock;
  const Nanoseconds until = clock.now() + limit_ms * kMillisecond;
  std::string text;
  std::array<char, 64 << 10> buffer{};
  for (;;) {
    if (clock.now() > until || (stop != nullptr && *stop))
      return Error{Errc::kUnavailable, "run " + words[0] + ' ' + words[1] + ": no answer within " +
                                           std::to_string(limit_ms / 1000) + " s"};
    pollfd p{child->output(), POLLIN, 0};
    if (::poll(&p, 1, kStopLookMs) <= 0) continue;
    const ssize_t n = ::read(child->output(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kLargestOutput) break;
  }
  if (text.empty())
    return Error{Errc::kInternal, "run " + words[0] + ' ' + words[1] + ": it printed nothing"};
  return text;
}

}  // namespace aliquot::node
