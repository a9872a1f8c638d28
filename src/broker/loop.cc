#include "broker/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/files.h"

namespace aliquot::broker {

Loop::Loop(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      posting_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // An empty handler: what matters is that the wait ends.
  static_cast<void>(add(wake_.get(), [this] { stopped_ = true; }));
  static_cast<void>(add(posting_.get(), [this] { run_posted(); }));
}

Status Loop::add(int fd, Handler ready) {
  const std::uint64_t token = next_token_++;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = token;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return errno_error("watch", "descriptor " + std::to_string(fd));
  token_of_[fd] = token;
  handlers_[token] = {fd, std::move(ready)};
  return {};
}

void Loop::remove(int fd) {
  const auto at = token_of_.find(fd);
  if (at == token_of_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(at->second);
  token_of_.erase(at);
}

void Loop::every(Nanoseconds period, Handler work) {
  timers_.push_back({period, now() + period, std::move(work)});
}

void Loop::post(Handler work) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  static_cast<void>(!write(posting_.get(), &one, sizeof one));
}

void Loop::run_posted() {
  std::uint64_t count = 0;
  static_cast<void>(!read(posting_.get(), &count, sizeof count));
  std::vector<Handler> work;
  {
    const std::lock_guard lock(posted_mutex_);
    work.swap(posted_);
  }
  for (const Handler& handler : work) handler();
}

int Loop::next_timer_ms() const {
  if (timers_.empty()) return -1;
  const Nanoseconds next = std::ranges::min_element(timers_, {}, &Timer::next)->next;
  return static_cast<int>(std::max<Nanoseconds>(0, (next - now()) / kMillisecond + 1));
}

void Loop::turn(int timeout_ms) {
  const int timer_ms = next_timer_ms();
  if (timer_ms >= 0 && (timeout_ms < 0 || timer_ms < timeout_ms)) timeout_ms = timer_ms;
  epoll_event events[64];
  const int n = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  if (before_) before_();
  for (int i = 0; i < n; ++i) {
    const std::uint64_t token = events[i].data.u64;  // a copy: epoll_event is packed
    const auto at = handlers_.find(token);
    if (at == handlers_.end()) continue;
    // A copy: the handler may remove itself.
    const Handler handler = at->second.second;
    handler();
  }
  for (Timer& timer : timers_) {
    if (now() < timer.next) continue;
    timer.next = now() + timer.period;
    timer.work();
  }
}

void Loop::run() {
  stopped_ = false;
  while (!stopped_) turn(-1);
}

void Loop::stop() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

}  // namespace aliquot::broker
