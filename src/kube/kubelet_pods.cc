#include "kube/kubelet_pods.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kube/object.h"

namespace aliquot::kube {

namespace {

constexpr int kAnswersWithout = 10;

bool same(const Pods& a, const Pods& b) {
  return std::ranges::equal(a, b, [](const PodRef& x, const PodRef& y) { return *x == *y; });
}

auto name_of(const PodRef& pod) {
  return std::pair<std::string_view, std::string_view>(pod->name_space, pod->name);
}

}  // namespace

KubeletPods::KubeletPods(ApiClient& kubelet, const log::Log& log, Nanoseconds interval)
    : kubelet_(kubelet), log_(log), interval_(interval) {}

void KubeletPods::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void KubeletPods::run(const std::stop_token& stop) {
  bool failing = false;
  while (!stop.stop_requested()) {
    const Status asked = refresh(stop);
    if (!asked && !failing && !stop.stop_requested())
      log_.warning(asked.error().message + "; asked again every " +
                   std::to_string(interval_ / kMillisecond) + " ms");
    if (asked && failing) log_.info("kubelet answers /pods again");
    failing = !asked;
    if (!wait_or_stop(interval_, stop)) return;
  }
}

Status KubeletPods::refresh(const std::stop_token& stop) {
  const std::lock_guard one(refresh_mutex_);
  const Result<format::Json> answer = kubelet_.get("/pods", stop);
  if (!answer) return answer.error();
  ObjectReader reader(*answer, "/pods");
  Pods fresh;
  for (const format::Json& item : reader.list({"items"})) {
    Result<Pod> pod = parse_pod(item);
    if (pod)
      fresh.push_back(std::make_shared<const Pod>(*std::move(pod)));
    else
      log_.error("left out: " + pod.error().message);
  }
  if (const Status read = reader.done(); !read) return read;
  keep_missing(fresh);
  std::ranges::sort(fresh, {}, name_of);
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    news = !synced_ || !same(pods_, fresh);
    if (news) pods_ = fresh;
  }
  synced_ = true;
  if (news && changed_) changed_(fresh);
  return {};
}

// Adds to an answer what is missing from it for the first few times.
void KubeletPods::keep_missing(Pods& fresh) {
  std::map<std::string, int> still;
  std::set<std::pair<std::string_view, std::string_view>> there;
  for (const PodRef& now : fresh) there.insert(name_of(now));
  for (const PodRef& before : pods()) {
    if (there.contains(name_of(before))) continue;
    const int times = missing_[before->uid] + 1;
    if (times >= kAnswersWithout) continue;
    still[before->uid] = times;
    fresh.push_back(before);
  }
  missing_ = std::move(still);
}

Pods KubeletPods::pods() const {
  const std::lock_guard lock(mutex_);
  return pods_;
}

PodRef KubeletPods::find(std::string_view name_space, std::string_view name) const {
  for (const PodRef& pod : pods())
    if (pod->name_space == name_space && pod->name == name) return pod;
  return nullptr;
}

Result<PodRef> KubeletPods::fetch(std::string_view name_space, std::string_view name) {
  if (const Status asked = refresh(); !asked) return asked.error();
  if (PodRef pod = find(name_space, name)) return pod;
  return Error{Errc::kNotFound, "pod " + std::string(name_space) + "/" + std::string(name) +
                                    ": kubelet knows none of that name"};
}

}  // namespace aliquot::kube
