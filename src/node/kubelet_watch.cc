#include "node/kubelet_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace aliquot::node {
namespace {

constexpr int kLookEveryMs = 1000;
// While something is to be tried again soon.
constexpr int kLookSoonMs = 100;

std::optional<SocketMark> mark_of(const std::filesystem::path& path) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0 || !S_ISSOCK(st.st_mode)) return std::nullopt;
  return SocketMark{st.st_dev, st.st_ino,
                    std::int64_t{st.st_ctim.tv_sec} * kSecond + st.st_ctim.tv_nsec};
}

}  // namespace

KubeletWatch::KubeletWatch(Options options, const DeviceBoard& board, PluginDecisions& decisions,
                           const Clock& clock)
    : options_(std::move(options)),
      board_(board),
      decisions_(decisions),
      clock_(clock),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

KubeletWatch::~KubeletWatch() {
  stopping_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  thread_.join();
}

void KubeletWatch::run() {
  while (!stopping_) {
    watch_directory();
    const Sight sight = look();
    ready_ = sight.stream && rule_.is_registered();
    switch (rule_.next(sight, clock_.now())) {
      case Step::kServe:
        serve();
        continue;  // and register at once
      case Step::kRegister:
        enroll(*sight.kubelet);
        continue;
      case Step::kWait:
        wait();
    }
  }
  server_.reset();
  ready_ = false;
}

Sight KubeletWatch::look() {
  Sight sight;
  sight.kubelet = mark_of(options_.directory / "kubelet.sock");
  const auto own = mark_of(own_path());
  sight.own_socket = server_ && own && own->device == own_.device && own->inode == own_.inode;
  sight.stream = server_ && server_->has_stream();
  return sight;
}

void KubeletWatch::serve() {
  server_.reset();  // removes the old socket; before there is a new one of that name
  auto server = PluginServer::serve({own_path(), options_.slots_per_gpu, options_.first_slot},
                                    board_, decisions_);
  const auto own = mark_of(own_path());
  const bool well = server && own;
  if (well) {
    server_ = std::move(*server);
    own_ = *own;
  } else {
    options_.log.error(server ? "serve at " + own_path().string() + ": the socket is gone"
                              : server.error().message);
  }
  rule_.served(well, clock_.now());
}

void KubeletWatch::enroll(const SocketMark& kubelet) {
  const Status done =
      register_plugin({options_.directory / "kubelet.sock", options_.endpoint, options_.resource});
  if (done) {
    ++registrations_;
    last_complaint_.clear();
    rule_.registered(kubelet, clock_.now());
    options_.log.info("registered " + options_.resource + " with kubelet");
    return;
  }
  rule_.refused(clock_.now());
  // Said once, not at every try.
  if (std::exchange(last_complaint_, done.error().message) != done.error().message)
    options_.log.warning(done.error().message + "; trying again");
}

// A directory that is replaced needs a new watch; inotify gives the same number for the same one.
void KubeletWatch::watch_directory() {
  if (!inotify_) inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  static_cast<void>(::inotify_add_watch(inotify_.get(), options_.directory.c_str(),
                                        IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF));
}

void KubeletWatch::wait() {
  const int limit = rule_.is_registered() && ready_ ? kLookEveryMs : kLookSoonMs;
  std::array<pollfd, 2> fds{{{inotify_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), limit) <= 0) return;
  // What happened does not matter, only that we look again.
  std::array<char, 4096> events{};
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace aliquot::node
