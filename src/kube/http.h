// One HTTP connection to a server, kept open from one request to the next: what this room needs of
// libcurl, which is seen by http.cc alone.
//
// Leaves to others: who we are and when to try again (api_client.h). One user at a time; a stop may
// be requested from any thread and ends the wait at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "kube/access.h"

namespace aliquot::kube {

struct HttpRequest {
  std::string method = "GET";
  std::string path;  // with its query, percent-encoded
  std::string body;
  std::string content_type;  // of the body
  std::string bearer_token;
};

struct HttpAnswer {
  int status = 0;
  std::string body;  // at most 64 MiB
  std::optional<Nanoseconds> retry_after;
};

// Why no answer came.
struct HttpFailure {
  Error error;
  bool sent = true;  // false: the server cannot have acted on it
};

class HttpConnection {
 public:
  explicit HttpConnection(const Access& access);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // The answer, whatever its status; what failed is in failure().
  std::optional<HttpAnswer> exchange(const HttpRequest& request, Nanoseconds deadline,
                                     const std::stop_token& stop);

  // Hands on the body of a 2xx answer piece by piece as it comes until the server ends it, `piece`
  // answers false, or nothing came for `idle`. The answer's body is filled for other statuses only.
  using Piece = std::function<bool(std::string_view)>;
  std::optional<HttpAnswer> stream(const HttpRequest& request, Nanoseconds idle,
                                   const std::stop_token& stop, const Piece& piece);

  // Of the last call that answered nothing.
  const HttpFailure& failure() const { return failure_; }

 private:
  struct Handles;
  struct Transfer;
  std::optional<HttpAnswer> perform(const HttpRequest& request, Transfer& transfer,
                                    const std::stop_token& stop);
  void set_up(const HttpRequest& request, Transfer& transfer);
  int wait(const Transfer& transfer, const std::stop_token& stop);

  Access access_;
  std::unique_ptr<Handles> handles_;
  HttpFailure failure_;
};

// `text` with everything escaped that has a meaning in a query.
std::string query_escaped(std::string_view text);

}  // namespace aliquot::kube
