#include "kube/list_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "kube/fake_server.h"
#include "kube/object.h"

namespace aliquot::kube {
namespace {

using format::Json;

std::string pod_text(std::string_view name, int version) {
  return R"({"metadata":{"name":")" + std::string(name) + R"(","resourceVersion":")" +
         std::to_string(version) + R"("}})";
}
std::string list_text(std::string_view items, int version, std::string_view more = "") {
  return R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"(","continue":")" +
         std::string(more) + R"("},"items":[)" + std::string(items) + "]}";
}
std::string event_text(std::string_view type, std::string_view object) {
  return R"({"type":")" + std::string(type) + R"(","object":)" + std::string(object) + "}\n";
}

// What a list-and-watch knows, by name.
class Names final : public ListSink {
 public:
  void replace(std::vector<Json> objects) override {
    const std::lock_guard lock(mutex_);
    ++lists_;
    names_.clear();
    for (const Json& object : objects) names_.insert(name(object));
  }
  void changed(Json object) override {
    const std::lock_guard lock(mutex_);
    names_.insert(name(object));
  }
  void deleted(Json object) override {
    const std::lock_guard lock(mutex_);
    names_.erase(name(object));
  }
  std::set<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  int lists() const {
    const std::lock_guard lock(mutex_);
    return lists_;
  }

 private:
  static std::string name(const Json& object) {
    return ObjectReader(object, "test").text({"metadata", "name"});
  }
  mutable std::mutex mutex_;
  std::set<std::string> names_;
  int lists_ = 0;
};

bool within_seconds(int seconds, const std::function<bool()>& holds) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return holds();
}

// Runs one against the server for the time of a test.
class Running {
 public:
  explicit Running(const FakeServer& server, ListWatch::Options options = quick())
      : client_(anonymous_access(server.url()), clock_,
                {2 * kSecond, 5 * kMillisecond, 20 * kMillisecond, 30 * kSecond, 1}),
        list_watch_(client_, "/api/v1/pods", names, clock_, {}, std::move(options)),
        thread_([this](const std::stop_token& stop) { list_watch_.run(stop); }) {}
  static ListWatch::Options quick() {
    ListWatch::Options options;
    options.field_selector = "spec.nodeName=node-a";
    options.first_wait = 10 * kMillisecond;
    options.longest_wait = 50 * kMillisecond;
    return options;
  }
  bool synced() const { return list_watch_.synced(); }
  void stop() {
    thread_.request_stop();
    thread_.join();
  }
  Names names;

 private:
  MonotonicClock clock_;
  ApiClient client_;
  ListWatch list_watch_;
  std::jthread thread_;
};

using Set = std::set<std::string>;

// A server that lists `first`, then streams what it is told to.
class Stage {
 public:
  using Reply = std::function<FakeReply(const FakeRequest&)>;
  explicit Stage(Reply list, Reply watch)
      : server([list = std::move(list), watch = std::move(watch)](const FakeRequest& request) {
          return request.query.contains("watch") ? watch(request) : list(request);
        }) {}
  ~Stage() { over = true; }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  std::vector<FakeRequest> watches() const {
    std::vector<FakeRequest> out;
    for (const FakeRequest& request : server.requests())
      if (request.query.contains("watch")) out.push_back(request);
    return out;
  }
  std::atomic<bool> over = false;  // before the server: its streams read it
  FakeServer server;
};

FakeReply streaming(std::string text, const std::atomic<bool>* until) {
  FakeReply reply;
  reply.stream = [text = std::move(text), until](const FakeReply::Write& write) {
    if (!text.empty() && !write(text)) return;
    while (until != nullptr && !*until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  return reply;
}

TEST(ListWatch, ListsInPagesAndWatchesFromWhereTheListWasMade) {
  std::atomic<bool> over = false;
  Stage stage(
      [](const FakeRequest& request) {
        if (!request.query.contains("continue"))
          return FakeReply{200, list_text(pod_text("a", 3), 7, "next=1"), {}, {}};
        EXPECT_EQ(request.query.at("continue"), "next=1");
        return FakeReply{200, list_text(pod_text("b", 4), 7), {}, {}};
      },
      [&](const FakeRequest&) {
        return streaming(
            event_text("ADDED", pod_text("c", 8)) + event_text("DELETED", pod_text("a", 9)), &over);
      });
  Running running(stage.server);
  EXPECT_TRUE(within_seconds(5, [&] { return running.names.names() == Set{"b", "c"}; }));
  EXPECT_TRUE(running.synced());
  EXPECT_EQ(running.names.lists(), 1);
  over = true;
  running.stop();
  const FakeRequest watch = stage.watches().at(0);
  EXPECT_EQ(watch.query.at("resourceVersion"), "7");
  EXPECT_EQ(watch.query.at("fieldSelector"), "spec.nodeName=node-a");
  EXPECT_EQ(watch.query.at("allowWatchBookmarks"), "true");
}

TEST(ListWatch, TakesUpAWatchWhereTheLastEndedBookmarksIncluded) {
  std::atomic<bool> over = false;
  std::atomic<int> watches = 0;
  Stage stage([](const FakeRequest&) { return FakeReply{200, list_text("", 7), {}, {}}; },
              [&](const FakeRequest&) {
                if (watches++ == 0)
                  return streaming(event_text("ADDED", pod_text("a", 8)) +
                                       event_text("BOOKMARK", pod_text("", 42)),
                                   nullptr);
                return streaming(event_text("ADDED", pod_text("b", 43)), &over);
              });
  Running running(stage.server);
  EXPECT_TRUE(within_seconds(5, [&] { return running.names.names() == Set{"a", "b"}; }));
  EXPECT_EQ(running.names.lists(), 1) << "an ended watch is no reason to list";
  over = true;
  running.stop();
  EXPECT_EQ(stage.watches().at(1).query.at("resourceVersion"), "42");
}

class Gone : public testing::TestWithParam<bool> {};

TEST_P(Gone, IsListedAnew) {
  std::atomic<bool> over = false;
  std::atomic<int> lists = 0;
  std::atomic<int> watches = 0;
  Stage stage(
      [&](const FakeRequest&) {
        return lists++ == 0 ? FakeReply{200, list_text(pod_text("old", 3), 7), {}, {}}
                            : FakeReply{200, list_text(pod_text("new", 90), 99), {}, {}};
      },
      [&](const FakeRequest&) {
        if (watches++ > 0) return streaming("", &over);
        if (GetParam())
          return streaming(
              event_text("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})"), nullptr);
        return FakeReply{410, R"({"kind":"Status","reason":"Expired","code":410})", {}, {}};
      });
  Running running(stage.server);
  EXPECT_TRUE(within_seconds(5, [&] { return running.names.names() == Set{"new"}; }));
  EXPECT_TRUE(within_seconds(5, [&] { return watches == 2; }));
  over = true;
  running.stop();
  EXPECT_EQ(stage.watches().at(1).query.at("resourceVersion"), "99");
}

INSTANTIATE_TEST_SUITE_P(ByEventAndByAnswer, Gone, testing::Bool());

TEST(ListWatch, GoesOnAfterFailuresOfListAndWatch) {
  std::atomic<bool> over = false;
  std::atomic<int> lists = 0;
  std::atomic<int> watches = 0;
  Stage stage(
      [&](const FakeRequest&) {
        return lists++ == 0 ? FakeReply{403, "{}", {}, {}}
                            : FakeReply{200, list_text("", 7), {}, {}};
      },
      [&](const FakeRequest&) {
        switch (watches++) {
          case 0:
            return FakeReply{500, "{}", {}, {}};
          case 1:
            return streaming("{\"type\":\"ADDED\"}\n", nullptr);
          case 2:
            return streaming("no json\n", nullptr);
          default:
            return streaming(event_text("ADDED", pod_text("a", 8)), &over);
        }
      });
  Running running(stage.server);
  EXPECT_TRUE(within_seconds(5, [&] { return running.names.names() == Set{"a"}; }));
  over = true;
  running.stop();
}

TEST(ListWatch, EndsAWatchThatIsSilent) {
  std::atomic<bool> over = false;
  std::atomic<int> watches = 0;
  Stage stage([](const FakeRequest&) { return FakeReply{200, list_text("", 7), {}, {}}; },
              [&](const FakeRequest&) {
                ++watches;
                return streaming("", &over);
              });
  ListWatch::Options options = Running::quick();
  options.idle = 100 * kMillisecond;
  Running running(stage.server, options);
  EXPECT_TRUE(within_seconds(10, [&] { return watches >= 2; }));
  over = true;
  running.stop();
}

TEST(ListWatch, DoesNotAskInACircleWhereWatchesEndAtOnce) {
  std::atomic<int> watches = 0;
  Stage stage([](const FakeRequest&) { return FakeReply{200, list_text("", 7), {}, {}}; },
              [&](const FakeRequest&) {
                ++watches;
                return streaming("", nullptr);
              });
  ListWatch::Options options = Running::quick();
  options.first_wait = 200 * kMillisecond;
  Running running(stage.server, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  running.stop();
  EXPECT_LE(watches, 4);
}

}  // namespace
}  // namespace aliquot::kube
