#include "node/scrape_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace aliquot::node {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string ask(unsigned port, const std::string& request) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return "none";
  send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd.get(), buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  return answer;
}

struct ScrapeServerTest : testing::Test {
  ScrapeServerTest() {
    auto served =
        ScrapeServer::serve("127.0.0.1:0", [](std::string_view path, std::string_view accept) {
          if (path != "/metrics") return ScrapeAnswer{404, "text/plain", "no\n"};
          return ScrapeAnswer{200, "text/x", "accept=" + std::string(accept) + "\n"};
        });
    EXPECT_TRUE(served) << served.error().message;
    server = std::move(*served);
  }
  std::unique_ptr<ScrapeServer> server;
};

TEST_F(ScrapeServerTest, AScrapeIsAnsweredWithWhatItAccepts) {
  const std::string answer =
      ask(server->port(), "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\nACCEPT: application/y\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\naccept= application/y\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 22\r\n"));
}

TEST_F(ScrapeServerTest, OtherPathsAndMethodsAreRefused) {
  EXPECT_THAT(ask(server->port(), "GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(server->port(), "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ScrapeServerTest, OneThatSaysNothingOrTooMuchKeepsNobodyElseWaitingForLong) {
  EXPECT_EQ(ask(server->port(), "GET /met"), "");  // cut off after a second
  EXPECT_EQ(ask(server->port(), std::string(100'000, 'x')), "");
  EXPECT_THAT(ask(server->port(), "GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr("200 OK"));
}

TEST(ScrapeServer, AnAddressThatCannotBeMeantIsNamed) {
  for (const char* address : {"", "9478", "localhost:1", "127.0.0.1:x", "127.0.0.1:99999"}) {
    const auto served = ScrapeServer::serve(address, nullptr);
    ASSERT_FALSE(served) << address;
    EXPECT_THAT(served.error().message, HasSubstr("expected IP:PORT"));
  }
}

}  // namespace
}  // namespace aliquot::node
