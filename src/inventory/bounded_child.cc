#include "inventory/bounded_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/files.h"

namespace aliquot::inventory {
namespace {

constexpr std::size_t kLongestAnswer = 16u << 20;
// Behind the answer: a child that died half way has not written it.
constexpr char kWhole = '\0';

[[noreturn]] void answer(const std::function<std::string()>& work, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string text = work();
  text += kWhole;
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(pipe, text.data() + sent, text.size() - sent);
    if (n <= 0 && errno != EINTR) _exit(1);
    sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  _exit(0);  // without the caller's destructors and buffers
}

}  // namespace

Result<BoundedChild> BoundedChild::begin(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", "");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return errno_error("fork", "");
  if (child == 0) answer(work, write_end.get());
  return BoundedChild(child, std::move(read_end));
}

BoundedChild::BoundedChild(BoundedChild&& other) noexcept
    : child_(std::exchange(other.child_, 0)), pipe_(std::move(other.pipe_)) {}

BoundedChild::~BoundedChild() {
  if (child_ == 0) return;
  kill(child_, SIGKILL);
  // A child stuck inside the kernel dies when the kernel lets go of it; it is not waited for.
  waitpid(child_, nullptr, WNOHANG);
}

Result<std::string> BoundedChild::wait(Nanoseconds deadline) {
  const MonotonicClock clock;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kLongestAnswer) {
    const Nanoseconds left = std::max<Nanoseconds>(deadline - clock.now(), 0);
    pollfd ready{pipe_.get(), POLLIN, 0};
    const int woken = poll(&ready, 1, static_cast<int>((left + kMillisecond - 1) / kMillisecond));
    if (woken < 0 && errno == EINTR) continue;
    if (woken <= 0) return Error{Errc::kUnavailable, kNoAnswer};
    const ssize_t n = read(pipe_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  waitpid(std::exchange(child_, 0), nullptr, 0);  // it has closed its end: it is at its end
  if (text.empty() || text.back() != kWhole)
    return Error{Errc::kUnavailable, "the process that asked the driver died"};
  text.pop_back();
  return text;
}

}  // namespace aliquot::inventory
