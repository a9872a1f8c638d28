#include "broker/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <cerrno>

#include "common/files.h"

namespace aliquot::broker {
namespace {

constexpr int kLockTries = 100;
constexpr int kLockPauseMs = 10;

// One descriptor per process, one per connection: take what the administrator allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Broker::Broker(BrokerOptions options, ProbeSource& probes, const Clock& clock, UniqueFd lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      loop_(clock),
      book_({options_.state_directory / "leases",
             options_.audience == Audience::kEveryone ? 0711u : 0700u, options_.identity,
             options_.socket, options_.choose, options_.hold_guarded_only, options_.log},
            probes, loop_),
      busy_at_(clock.now()) {}

Result<std::unique_ptr<Broker>> Broker::open(BrokerOptions options, ProbeSource& probes,
                                             const Clock& clock) {
  if (const Status made = make_directories(options.state_directory,
                                           options.audience == Audience::kEveryone ? 0755 : 0700);
      !made)
    return made.error();
  const auto path = options.state_directory / "broker.lock";
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return errno_error("lock", path);
  // One that is just ending still has it for a moment.
  for (int tries = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error("lock", path);
    if (tries == kLockTries)
      return Error{Errc::kUnavailable, "lock " + path.string() + ": another broker runs here"};
    poll(nullptr, 0, kLockPauseMs);
  }
  raise_descriptor_limit();
  std::unique_ptr<Broker> broker(new Broker(std::move(options), probes, clock, std::move(lock)));
  if (const Status started = broker->start(); !started) return started.error();
  return broker;
}

Status Broker::start() {
  if (const Status adopted = book_.adopt_all(); !adopted) return adopted;
  auto admin = AdminSocket::open(
      {options_.state_directory / "broker.sock", options_.identity, options_.audience,
       options_.inherited_listener, [this] { loop_.stop(); }, options_.notes},
      book_, loop_);
  if (!admin) return admin.error();
  admin_ = std::move(*admin);
  loop_.every(250 * kMillisecond, [this] {
    book_.often();
    admin_->try_waiting();
    end_when_idle();
  });
  loop_.every(kSecond, [this] { book_.seldom(); });
  loop_.before_each_turn([this] {
    if (seen_changes_ == book_.changes()) return;
    seen_changes_ = book_.changes();
    admin_->try_waiting();
  });
  return {};
}

void Broker::end_when_idle() {
  if (book_.size() != 0 || admin_->connections() != 0) busy_at_ = loop_.now();
  if (options_.idle_exit > 0 && loop_.now() - busy_at_ > options_.idle_exit) loop_.stop();
}

}  // namespace aliquot::broker
