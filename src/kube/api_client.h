// Requests to an API server (or a kubelet): who we are, retries, deadlines, and what an answer
// means.
//
// What is tried again, with growing waits and within the request's deadline: answers 429 and 503
// and whatever names Retry-After; failed connections; for methods that may be repeated (all but
// POST) also broken answers and 500, 502, 504. A 401 reads the token anew, once. Everything else is
// the caller's.
//
// Leaves to others: lists that stay current (list_watch.h). Any thread; requests at the same time
// take a connection each, which is kept for the next one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "format/json.h"
#include "kube/http.h"

namespace aliquot::kube {

// How a patch is laid over the object.
enum class PatchKind : std::uint8_t { kMerge, kStrategic, kJson };

struct Answer {
  int status = 0;
  std::string reason;  // of a Status object: "NotFound", "AlreadyExists", "Conflict", "Expired"
  std::string message;
  format::Json body;
  bool ok() const { return status >= 200 && status < 300; }
};

class ApiClient {
 public:
  struct Options {
    Nanoseconds deadline = 10 * kSecond;  // of one request with all its retries
    Nanoseconds first_wait = 100 * kMillisecond;
    Nanoseconds longest_wait = 5 * kSecond;
    Nanoseconds token_age = 30 * kSecond;  // a token file is read again after that
    std::uint64_t seed = 1;                // of the waits' jitter
  };
  // `clock` outlives the client.
  ApiClient(Access access, const Clock& clock) : ApiClient(std::move(access), clock, Options()) {}
  ApiClient(Access access, const Clock& clock, Options options);
  ~ApiClient();

  // The object, or an error by the answer: 404 and 410 kNotFound, 401 and 403 kDenied, 429
  // kExhausted, 400, 409 and 422 kInvalid, the rest kUnavailable. `path` starts with a slash.
  Result<format::Json> get(const std::string& path, const std::stop_token& stop = {});
  Result<format::Json> create(const std::string& path, const format::Json& object,
                              const std::stop_token& stop = {});
  Result<format::Json> patch(const std::string& path, PatchKind kind, const format::Json& patch,
                             const std::stop_token& stop = {});
  // Deleting what is not there is no error. With `uid` only the object of that uid is deleted.
  Status remove(const std::string& path, std::string_view uid = {},
                const std::stop_token& stop = {});

  // As above for callers that need to tell answers apart (409 on a Binding). An error here means
  // that no answer came within the deadline.
  Result<Answer> send(const HttpRequest& request, const std::stop_token& stop = {});

  // One try, no retry: the body in pieces (HttpConnection::stream).
  Result<Answer> stream(const std::string& path, Nanoseconds idle, const std::stop_token& stop,
                        const HttpConnection::Piece& piece);

  const std::string& server() const { return access_.server; }

 private:
  class Lent;
  std::string token(bool anew);
  Nanoseconds wait_before(int attempt);

  const Access access_;
  const Clock& clock_;
  const Options options_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<HttpConnection>> idle_;
  std::string token_;
  Nanoseconds token_read_ = 0;
  std::mt19937_64 random_;
};

// Waits unless a stop is requested; false: it was.
bool wait_or_stop(Nanoseconds time, const std::stop_token& stop);

}  // namespace aliquot::kube
