#include "node/notices.h"

#include <chrono>
#include <ctime>
#include <utility>

namespace aliquot::node {
namespace {

using inventory::HealthState;

// Many containers may be refused while the server is away; the newest matter least.
constexpr std::size_t kMostWaiting = 256;

bool usable(HealthState state) {
  return state == HealthState::kHealthy || state == HealthState::kSuspect;
}

}  // namespace

Notices::Notices(Options options, kube::ApiClient& client)
    : options_(std::move(options)), client_(client), thread_([this] { run(); }) {}

Notices::~Notices() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

std::string Notices::title(const std::string& uuid) const {
  const auto index = options_.gpu_index.find(uuid);
  return "GPU " +
         (index == options_.gpu_index.end() ? uuid : std::to_string(index->second) + " " + uuid);
}

void Notices::health(const HealthChange& change) {
  const bool before = usable(change.before), after = usable(change.after);
  kube::Event event;
  event.target = {"Node", {}, options_.node, options_.node};
  event.reason = after ? "GpuRecovered" : "GpuUnhealthy";
  event.kind = after ? kube::EventKind::kNormal : kube::EventKind::kWarning;
  event.message = title(change.uuid) +
                  (after ? " is usable again"
                         : " is " + std::string(name_of(change.after)) + ": " + change.why +
                               "; no new container gets it until it has recovered");
  if (before != after) post(std::move(event));
  const std::lock_guard lock(mutex_);
  if (after) {
    unusable_.erase(change.uuid);
  } else {
    Unusable& one = unusable_[change.uuid];
    one.state = change.after;
    // While it recovers nothing stands against it any more: what it recovers from is still said.
    if (!change.why.empty()) one.why = change.why;
  }
  health_changed_ = true;
  woken_.notify_all();
}

void Notices::post(kube::Event event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= kMostWaiting) {
    ++dropped_;
    return;
  }
  events_.push_back(std::move(event));
  woken_.notify_all();
}

std::uint64_t Notices::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

kube::Condition Notices::condition(const std::map<std::string, Unusable>& unusable) const {
  if (unusable.empty()) return {kHealthCondition, "True", "AllUsable", "every GPU is usable"};
  std::string message;
  for (const auto& [uuid, one] : unusable)
    message += (message.empty() ? "" : "; ") + title(uuid) + " is " +
               std::string(name_of(one.state)) + ": " + one.why;
  return {kHealthCondition, "False", "GpuNotUsable", message};
}

Status Notices::write_health(const std::map<std::string, Unusable>& unusable) {
  const std::time_t now = std::time(nullptr);
  if (const Status set = kube::set_condition(client_, options_.node, condition(unusable), now);
      !set)
    return set;
  if (options_.taint_effect.empty()) return {};
  return kube::set_taint(client_, options_.node, {kHealthTaint, "", options_.taint_effect},
                         unusable.empty() ? kube::TaintIs::kCleared : kube::TaintIs::kSet);
}

void Notices::run() {
  const std::chrono::nanoseconds retry(options_.retry_after), repeat(options_.repeat_after);
  std::string complaint;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool health = std::exchange(health_changed_, false);
    const auto unusable = unusable_;
    auto events = std::exchange(events_, {});
    lock.unlock();
    Status done;
    if (health) done = write_health(unusable);
    const bool health_failed = !done;
    for (; !events.empty(); events.pop_front()) {
      const Status posted = kube::post_event(client_, events.front(), std::time(nullptr));
      if (posted) continue;
      done = posted;
      // One that the server does not want (its namespace is gone) is not wanted later either.
      if (posted.error().code == Errc::kUnavailable || posted.error().code == Errc::kDenied) break;
    }
    if (!done && std::exchange(complaint, done.error().message) != done.error().message)
      options_.log.warning(done.error().message);
    if (done) complaint.clear();
    lock.lock();
    health_changed_ = health_changed_ || health_failed;
    const bool left = health_failed || !events.empty();
    events_.insert(events_.begin(), events.begin(), events.end());
    const auto news = [this] { return stopping_ || health_changed_ || !events_.empty(); };
    if (left) {
      woken_.wait_for(lock, retry, [this] { return stopping_; });
    } else if (!woken_.wait_for(lock, repeat, news)) {
      health_changed_ = true;
    }
  }
}

}  // namespace aliquot::node
