#include "kube/api_pods.h"

namespace aliquot::kube {

namespace {

ListWatch::Options of_node(const std::string& node) {
  ListWatch::Options options;
  options.field_selector = "spec.nodeName=" + node;
  return options;
}

}  // namespace

ApiPods::ApiPods(ApiClient& client, const std::string& node, const Clock& clock,
                 const log::Log& log)
    : ApiPods(client, clock, log, of_node(node)) {}

ApiPods::ApiPods(ApiClient& client, const Clock& clock, const log::Log& log,
                 ListWatch::Options options)
    : client_(client),
      log_(log),
      list_watch_(client, "/api/v1/pods", *this, clock, log, std::move(options)) {}

void ApiPods::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { list_watch_.run(stop); });
}

Pods ApiPods::pods() const {
  const std::lock_guard lock(mutex_);
  Pods out;
  out.reserve(pods_.size());
  for (const auto& [name, pod] : pods_) out.push_back(pod);
  return out;
}

PodRef ApiPods::find(std::string_view name_space, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = pods_.find(PodName{std::string(name_space), std::string(name)});
  return at == pods_.end() ? nullptr : at->second;
}

Result<PodRef> ApiPods::fetch(std::string_view name_space, std::string_view name) {
  const Result<format::Json> object = client_.get(
      "/api/v1/namespaces/" + query_escaped(name_space) + "/pods/" + query_escaped(name));
  if (!object) return object.error();
  Result<Pod> pod = parse_pod(*object);
  if (!pod) return pod.error();
  // Not put among pods(): the watch alone orders what is newer there.
  return std::make_shared<const Pod>(*std::move(pod));
}

// nullptr, and a line in the log, for an object that cannot be read: the others go on.
PodRef ApiPods::read(const format::Json& object) const {
  Result<Pod> pod = parse_pod(object);
  if (pod) return std::make_shared<const Pod>(*std::move(pod));
  log_.error("left out: " + pod.error().message);
  return nullptr;
}

void ApiPods::replace(std::vector<format::Json> objects) {
  std::map<PodName, PodRef> all;
  for (const format::Json& object : objects)
    if (const PodRef pod = read(object)) all[{pod->name_space, pod->name}] = pod;
  {
    const std::lock_guard lock(mutex_);
    pods_ = std::move(all);
  }
  if (changed_) changed_(pods());
}

void ApiPods::changed(format::Json object) {
  const PodRef pod = read(object);
  if (pod == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    pods_[{pod->name_space, pod->name}] = pod;
  }
  if (changed_) changed_(pods());
}

void ApiPods::deleted(format::Json object) {
  const PodRef pod = read(object);
  if (pod == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    pods_.erase({pod->name_space, pod->name});
  }
  if (changed_) changed_(pods());
}

}  // namespace aliquot::kube
