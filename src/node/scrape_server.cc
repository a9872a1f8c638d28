#include "node/scrape_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/files.h"

namespace aliquot::node {
namespace {

constexpr std::size_t kLargestRequest = 8 << 10;
constexpr timeval kPatience{1, 0};

Result<sockaddr_in> address_of(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(
      text.data() + (colon == std::string::npos ? text.size() : colon + 1), end, port);
  const bool good = colon != std::string::npos && read.ec == std::errc{} && read.ptr == end &&
                    ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) == 1;
  if (!good) return Error{Errc::kInvalid, "serve metrics at \"" + text + "\": expected IP:PORT"};
  address.sin_port = htons(port);
  return address;
}

// The value of a header, its name in lower case.
std::string header(std::string_view request, std::string_view name) {
  std::string lower(request);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t at = lower.find("\r\n" + std::string(name) + ":");
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 3;
  return std::string(request.substr(from, request.find("\r\n", from) - from));
}

std::string response_of(const ScrapeAnswer& answer) {
  const char* reason = answer.status == 200   ? "OK"
                       : answer.status == 404 ? "Not Found"
                       : answer.status == 503 ? "Service Unavailable"
                                              : "Bad Request";
  return "HTTP/1.1 " + std::to_string(answer.status) + " " + reason +
         "\r\nContent-Type: " + answer.content_type +
         "\r\nContent-Length: " + std::to_string(answer.body.size()) +
         "\r\nConnection: close\r\n\r\n" + answer.body;
}

}  // namespace

Result<std::unique_ptr<ScrapeServer>> ScrapeServer::serve(const std::string& text, Answer answer) {
  auto address = address_of(text);
  if (!address) return address.error();
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  auto* raw = reinterpret_cast<sockaddr*>(&*address);
  socklen_t length = sizeof *address;
  if (!listener || ::bind(listener.get(), raw, length) != 0 || ::listen(listener.get(), 16) != 0 ||
      ::getsockname(listener.get(), raw, &length) != 0)
    return errno_error("serve metrics at", text);
  return std::unique_ptr<ScrapeServer>(
      new ScrapeServer(std::move(listener), ntohs(address->sin_port), std::move(answer)));
}

ScrapeServer::ScrapeServer(UniqueFd listener, unsigned port, Answer answer)
    : listener_(std::move(listener)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port_(port),
      answer_(std::move(answer)),
      thread_([this] { run(); }) {}

ScrapeServer::~ScrapeServer() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  thread_.join();
}

void ScrapeServer::run() {
  for (;;) {
    std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) return;
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) serve_one(connection.get());
  }
}

void ScrapeServer::serve_one(int connection) {
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  std::string request;
  std::array<char, 2048> buffer{};
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (n <= 0 || request.size() > kLargestRequest) return;
    request.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ScrapeAnswer answer{400, "text/plain", "only GET is served\n"};
  if (request.starts_with("GET ")) {
    const std::string target = request.substr(4, request.find(' ', 4) - 4);
    answer = answer_(target.substr(0, target.find('?')), header(request, "accept"));
  }
  const std::string response = response_of(answer);
  std::string_view left = response;
  while (!left.empty()) {
    const ssize_t n = ::send(connection, left.data(), left.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace aliquot::node
