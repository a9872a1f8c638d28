#include "kube/list_watch.h"

#include <algorithm>

#include "kube/object.h"

namespace aliquot::kube {

namespace {

using format::Json;

constexpr std::size_t kLongestLine = 8u << 20;  // etcd's own limit of an object is 1.5 MiB
constexpr int kGone = 410;

}  // namespace

ListWatch::ListWatch(ApiClient& client, std::string path, ListSink& sink, const Clock& clock,
                     log::Log log, Options options)
    : client_(client),
      path_(std::move(path)),
      sink_(sink),
      clock_(clock),
      log_(std::move(log)),
      options_(std::move(options)) {}

std::string ListWatch::query(bool watching, const std::string& more) const {
  std::string out = path_ + "?";
  if (!options_.field_selector.empty())
    out += "fieldSelector=" + query_escaped(options_.field_selector) + "&";
  if (watching)
    return out + "watch=1&allowWatchBookmarks=true&resourceVersion=" + query_escaped(version_) +
           "&timeoutSeconds=" +
           std::to_string(std::max<Nanoseconds>(1, options_.watch_for / kSecond));
  out += "limit=" + std::to_string(options_.page);
  return more.empty() ? out : out + "&continue=" + query_escaped(more);
}

Status ListWatch::list(const std::stop_token& stop) {
  std::vector<Json> objects;
  std::string more;
  std::string version;
  do {
    const Result<Json> page = client_.get(query(false, more), stop);
    if (!page) return page.error();
    last_heard_ = clock_.now();
    ObjectReader reader(*page, path_);
    for (const Json& item : reader.list({"items"})) objects.push_back(item);
    version = reader.text({"metadata", "resourceVersion"});
    more = reader.text({"metadata", "continue"});
    if (const Status read = reader.done(); !read) return read;
  } while (!more.empty());
  version_ = version;
  sink_.replace(std::move(objects));
  synced_ = true;
  return {};
}

Result<ListWatch::Next> ListWatch::event(std::string_view line) {
  const Result<Json> json = format::parse_json(line, path_ + " watch");
  if (!json) return json.error();
  ObjectReader reader(*json, path_ + " watch");
  const std::string type = reader.text({"type"});
  const Json* object = reader.find({"object"});
  if (object == nullptr) return Error{Errc::kInvalid, path_ + " watch: an event without object"};
  if (type == "ERROR") {
    if (reader.number({"object", "code"}) == kGone) return Next::kList;
    return Error{Errc::kUnavailable, path_ + " watch: " + reader.text({"object", "message"})};
  }
  if (std::string version = reader.text({"object", "metadata", "resourceVersion"});
      !version.empty())
    version_ = std::move(version);
  if (const Status read = reader.done(); !read) return read.error();
  if (type == "ADDED" || type == "MODIFIED")
    sink_.changed(*object);
  else if (type == "DELETED")
    sink_.deleted(*object);
  return Next::kWatch;  // BOOKMARK, or a kind that came later
}

Result<ListWatch::Next> ListWatch::watch(const std::stop_token& stop) {
  std::string line;
  Result<Next> next = Next::kWatch;
  const auto piece = [&](std::string_view bytes) {
    last_heard_ = clock_.now();
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      line += bytes.substr(0, end);
      if (line.size() > kLongestLine) {
        next = Error{Errc::kInvalid, path_ + " watch: an event of more than 8 MiB"};
        return false;
      }
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      if (!line.empty()) next = event(line);
      line.clear();
      if (!next || *next != Next::kWatch) return false;
    }
    return true;
  };
  const Result<Answer> answer = client_.stream(query(true, {}), options_.idle, stop, piece);
  if (!next || *next != Next::kWatch) return next;
  if (!answer) return answer.error();
  if (answer->status == kGone) return Next::kList;
  if (!answer->ok())
    return Error{Errc::kUnavailable, path_ + " watch: " + std::to_string(answer->status) + " " +
                                         answer->reason + ": " + answer->message};
  return Next::kWatch;
}

void ListWatch::run(const std::stop_token& stop) {
  Next next = Next::kList;
  Nanoseconds wait = options_.first_wait;
  while (!stop.stop_requested()) {
    const Nanoseconds began = clock_.now();
    Status done;
    if (next == Next::kList) {
      done = list(stop);
      if (done) next = Next::kWatch;
    } else {
      const Result<Next> ended = watch(stop);
      if (ended)
        next = *ended;
      else
        done = ended.error();
      // A server that answers a watch with nothing, or with "gone", must not be asked in a circle.
      if (ended && clock_.now() - began < options_.first_wait && !wait_or_stop(wait, stop)) return;
    }
    if (done) {
      wait = options_.first_wait;
      continue;
    }
    if (stop.stop_requested()) return;
    log_.warning(done.error().message + "; again in " + std::to_string(wait / kMillisecond) +
                 " ms");
    if (!wait_or_stop(wait, stop)) return;
    wait = std::min(2 * wait, options_.longest_wait);
  }
}

}  // namespace aliquot::kube
