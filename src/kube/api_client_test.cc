#include "kube/api_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/files.h"
#include "kube/fake_server.h"

namespace aliquot::kube {
namespace {

using format::Json;

constexpr ApiClient::Options kQuick{5 * kSecond, 5 * kMillisecond, 20 * kMillisecond, 30 * kSecond,
                                    1};

std::string status_body(std::string_view reason, std::string_view message) {
  return Json::object()
      .set("kind", "Status")
      .set("reason", std::string(reason))
      .set("message", std::string(message))
      .dump();
}

class ApiClientTest : public testing::Test {
 protected:
  ApiClient client(const FakeServer& server, ApiClient::Options options = kQuick) {
    access_.server = server.url();
    return ApiClient(access_, clock_, options);
  }
  MonotonicClock clock_;
  Access access_;
};

TEST_F(ApiClientTest, GivesTheObjectOfAnAnswer) {
  const FakeServer server([](const FakeRequest&) { return FakeReply{200, R"({"a": 1})", {}, {}}; });
  ApiClient api = client(server);
  const Result<Json> object = api.get("/api/v1/nodes/n?x=" + query_escaped("a=b c"));
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->dump(), R"({"a":1})");
  EXPECT_EQ(server.requests().at(0).path, "/api/v1/nodes/n");
  EXPECT_EQ(server.requests().at(0).query.at("x"), "a=b c");
}

TEST_F(ApiClientTest, SendsPatchesInTheirKindAndObjectsAsJson) {
  const FakeServer server([](const FakeRequest&) { return FakeReply{200, "{}", {}, {}}; });
  ApiClient api = client(server);
  EXPECT_TRUE(api.patch("/p", PatchKind::kStrategic, Json::object().set("a", 1)));
  EXPECT_TRUE(api.patch("/p", PatchKind::kMerge, Json::object()));
  EXPECT_TRUE(api.create("/c", Json::object().set("b", 2)));
  EXPECT_TRUE(api.remove("/d", "u-1"));
  const std::vector<FakeRequest> seen = server.requests();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_EQ(seen[0].content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(seen[0].body, R"({"a":1})");
  EXPECT_EQ(seen[1].content_type, "application/merge-patch+json");
  EXPECT_EQ(seen[2].method, "POST");
  EXPECT_EQ(seen[2].body, R"({"b":2})");
  EXPECT_EQ(seen[3].method, "DELETE");
  EXPECT_NE(seen[3].body.find(R"("preconditions":{"uid":"u-1"})"), std::string::npos);
}

TEST_F(ApiClientTest, TellsAnErrorByTheServersOwnWords) {
  int status = 0;
  const FakeServer server([&](const FakeRequest&) {
    return FakeReply{status, status_body("Because", "it is so"), {}, {}};
  });
  ApiClient api = client(server);
  const std::pair<int, Errc> codes[] = {{404, Errc::kNotFound}, {410, Errc::kNotFound},
                                        {403, Errc::kDenied},   {401, Errc::kDenied},
                                        {409, Errc::kInvalid},  {422, Errc::kInvalid}};
  for (const auto& [code, expected] : codes) {
    status = code;
    const Result<Json> object = api.get("/x");
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, expected) << code;
    EXPECT_EQ(object.error().message, "GET /x: " + std::to_string(code) + " Because: it is so");
  }
  EXPECT_EQ(server.requests().size(), 6u) << "none of these is tried again";
}

TEST_F(ApiClientTest, DeletingWhatIsGoneIsNoError) {
  const FakeServer server([](const FakeRequest&) { return FakeReply{404, "{}", {}, {}}; });
  EXPECT_TRUE(client(server).remove("/x"));
}

TEST_F(ApiClientTest, TriesAgainWhatTheServerCouldNotDo) {
  std::atomic<int> left{3};
  const int statuses[] = {429, 503, 500};
  const FakeServer server([&](const FakeRequest&) {
    const int now = left > 0 ? statuses[--left] : 200;
    return FakeReply{now, "{}", {}, {}};
  });
  EXPECT_TRUE(client(server).get("/x"));
  EXPECT_EQ(server.requests().size(), 4u);
}

TEST_F(ApiClientTest, DoesNotRepeatACreateThatMayHaveHappened) {
  const FakeServer server([](const FakeRequest&) { return FakeReply{500, "{}", {}, {}}; });
  ApiClient api = client(server);
  EXPECT_FALSE(api.create("/x", Json::object()));
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(ApiClientTest, WaitsAsLongAsTheServerAsks) {
  std::atomic<bool> first{true};
  const FakeServer server([&](const FakeRequest&) {
    if (first.exchange(false)) return FakeReply{429, "{}", {{"Retry-After", "1"}}, {}};
    return FakeReply{200, "{}", {}, {}};
  });
  const Nanoseconds began = clock_.now();
  EXPECT_TRUE(client(server).create("/x", Json::object()));
  EXPECT_GE(clock_.now() - began, kSecond);
}

TEST_F(ApiClientTest, GivesUpAtTheDeadlineWithTheLastAnswer) {
  const FakeServer server(
      [](const FakeRequest&) { return FakeReply{503, status_body("Busy", "later"), {}, {}}; });
  ApiClient::Options options = kQuick;
  options.deadline = 100 * kMillisecond;
  ApiClient api = client(server, options);
  const Nanoseconds began = clock_.now();
  const Result<Json> object = api.get("/x");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().message, "GET /x: 503 Busy: later");
  EXPECT_LT(clock_.now() - began, kSecond);
}

TEST_F(ApiClientTest, NamesTheServerThatDoesNotListen) {
  access_.server = "http://127.0.0.1:1";
  ApiClient::Options options = kQuick;
  options.deadline = 50 * kMillisecond;
  ApiClient api(access_, clock_, options);
  const Result<Json> object = api.create("/x", Json::object());
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Errc::kUnavailable);
  EXPECT_EQ(object.error().message.find("POST http://127.0.0.1:1/x: "), 0u)
      << object.error().message;
}

TEST_F(ApiClientTest, AServerThatHangsCostsTheDeadlineAndNoMore) {
  std::atomic<bool> over{false};
  const FakeServer server([&](const FakeRequest&) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return FakeReply{};
  });
  ApiClient::Options options = kQuick;
  options.deadline = 200 * kMillisecond;
  ApiClient api = client(server, options);
  const Nanoseconds began = clock_.now();
  EXPECT_FALSE(api.get("/x"));
  EXPECT_LT(clock_.now() - began, 2 * kSecond);
  over = true;
}

TEST_F(ApiClientTest, AStopEndsTheWaitAtOnce) {
  std::atomic<bool> over{false};
  const FakeServer server([&](const FakeRequest&) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return FakeReply{};
  });
  ApiClient::Options options = kQuick;
  options.deadline = 30 * kSecond;
  ApiClient api = client(server, options);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const Nanoseconds began = clock_.now();
  const Result<Json> object = api.get("/x", stop.get_token());
  ASSERT_FALSE(object);
  EXPECT_LT(clock_.now() - began, 5 * kSecond);
  over = true;
}

TEST_F(ApiClientTest, ReadsARotatedTokenAfterA401) {
  std::string name = "/tmp/aliquot-token.XXXXXX";
  const std::filesystem::path directory = mkdtemp(name.data());
  access_.token_file = directory / "token";
  ASSERT_TRUE(write_file_atomically(access_.token_file, "old\n"));
  const FakeServer server([&](const FakeRequest& request) {
    return FakeReply{request.authorization == "Bearer new" ? 200 : 401, "{}", {}, {}};
  });
  ApiClient api = client(server);
  EXPECT_EQ(api.get("/x").error().code, Errc::kDenied);
  EXPECT_EQ(server.requests().at(0).authorization, "Bearer old");
  ASSERT_TRUE(write_file_atomically(access_.token_file, "new\n"));
  EXPECT_TRUE(api.get("/x"));
  std::filesystem::remove_all(directory);
}

TEST_F(ApiClientTest, HandsOnAStreamPieceByPiece) {
  const FakeServer server([](const FakeRequest&) {
    FakeReply reply;
    reply.stream = [](const FakeReply::Write& write) {
      write("one\n");
      write("two\n");
    };
    return reply;
  });
  ApiClient api = client(server);
  std::string seen;
  const Result<Answer> answer = api.stream("/w", kSecond, {}, [&](std::string_view piece) {
    seen += piece;
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(seen, "one\ntwo\n");
}

TEST_F(ApiClientTest, AStreamThatIsSilentEnds) {
  std::atomic<bool> over{false};
  const FakeServer server([&](const FakeRequest&) {
    FakeReply reply;
    reply.stream = [&](const FakeReply::Write& write) {
      write("one\n");
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    return reply;
  });
  ApiClient api = client(server);
  const Nanoseconds began = clock_.now();
  EXPECT_FALSE(api.stream("/w", kSecond, {}, [](std::string_view) { return true; }));
  EXPECT_LT(clock_.now() - began, 10 * kSecond);
  over = true;
}

}  // namespace
}  // namespace aliquot::kube
