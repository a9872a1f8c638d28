#include "kube/api_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "common/files.h"
#include "kube/object.h"

namespace aliquot::kube {

namespace {

using format::Json;

constexpr std::size_t kLongestToken = 64u << 10;

std::string_view content_type(PatchKind kind) {
  switch (kind) {
    case PatchKind::kMerge:
      return "application/merge-patch+json";
    case PatchKind::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchKind::kJson:
      break;
  }
  return "application/json-patch+json";
}

Errc code_of(int status) {
  switch (status) {
    case 404:
    case 410:
      return Errc::kNotFound;
    case 401:
    case 403:
      return Errc::kDenied;
    case 429:
      return Errc::kExhausted;
    case 400:
    case 409:
    case 422:
      return Errc::kInvalid;
    default:
      return Errc::kUnavailable;
  }
}

bool again(const HttpAnswer& answer, bool repeatable) {
  if (answer.status < 400) return false;
  if (answer.status == 429 || answer.status == 503 || answer.retry_after) return true;
  return repeatable && (answer.status == 500 || answer.status == 502 || answer.status == 504);
}

// A body that is no JSON is no error where the status tells enough.
Answer read_answer(const HttpRequest& request, HttpAnswer&& raw) {
  Answer answer;
  answer.status = raw.status;
  Result<Json> body = format::parse_json(raw.body, request.method + " " + request.path);
  if (body) {
    answer.body = *std::move(body);
    if (!answer.ok()) {
      ObjectReader status(answer.body, "status");
      answer.reason = status.text({"reason"});
      answer.message = status.text({"message"});
    }
  } else if (!answer.ok()) {
    answer.message = raw.body.substr(0, 200);
  }
  return answer;
}

Result<Json> object_or_error(const HttpRequest& request, Result<Answer> answer) {
  if (!answer) return answer.error();
  if (answer->ok()) return std::move(answer->body);
  std::string what = request.method + " " + request.path + ": " + std::to_string(answer->status);
  if (!answer->reason.empty()) what += " " + answer->reason;
  if (!answer->message.empty()) what += ": " + answer->message;
  return Error{code_of(answer->status), what};
}

}  // namespace

bool wait_or_stop(Nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::nanoseconds(time), [] { return false; });
  return !stop.stop_requested();
}

// A connection taken out of the idle ones and put back at the end.
class ApiClient::Lent {
 public:
  explicit Lent(ApiClient& client) : client_(client) {
    const std::lock_guard lock(client_.mutex_);
    if (!client_.idle_.empty()) {
      connection_ = std::move(client_.idle_.back());
      client_.idle_.pop_back();
    }
    if (connection_ == nullptr) connection_ = std::make_unique<HttpConnection>(client_.access_);
  }
  ~Lent() {
    const std::lock_guard lock(client_.mutex_);
    client_.idle_.push_back(std::move(connection_));
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  HttpConnection* operator->() { return connection_.get(); }

 private:
  ApiClient& client_;
  std::unique_ptr<HttpConnection> connection_;
};

ApiClient::ApiClient(Access access, const Clock& clock, Options options)
    : access_(std::move(access)), clock_(clock), options_(options), random_(options.seed) {}
ApiClient::~ApiClient() = default;

std::string ApiClient::token(bool anew) {
  if (access_.token_file.empty()) return access_.token;
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = clock_.now();
  if (anew || token_.empty() || now - token_read_ > options_.token_age) {
    // A file that cannot be read for a moment (it is replaced) leaves the last token in use.
    if (Result<std::string> text = read_file(access_.token_file, kLongestToken)) {
      token_ = *std::move(text);
      while (!token_.empty() && (token_.back() == '\n' || token_.back() == ' ')) token_.pop_back();
    }
    token_read_ = now;
  }
  return token_;
}

// Doubling, and between half and all of it, so that many clients do not come back together.
Nanoseconds ApiClient::wait_before(int attempt) {
  Nanoseconds wait = options_.first_wait;
  for (int i = 1; i < attempt && wait < options_.longest_wait; ++i) wait *= 2;
  wait = std::min(wait, options_.longest_wait);
  const std::lock_guard lock(mutex_);
  return std::uniform_int_distribution<Nanoseconds>(wait / 2, wait)(random_);
}

Result<Answer> ApiClient::send(const HttpRequest& request, const std::stop_token& stop) {
  const bool repeatable = request.method != "POST";
  const Nanoseconds end = clock_.now() + options_.deadline;
  bool token_anew = false;
  HttpRequest with_token = request;
  std::optional<HttpAnswer> last;  // what the server said says more than a deadline that passed
  for (int attempt = 1;; ++attempt) {
    with_token.bearer_token = token(token_anew);
    std::optional<HttpAnswer> answer;
    HttpFailure failure;
    {
      Lent connection(*this);
      answer = connection->exchange(with_token,
                                    std::max<Nanoseconds>(end - clock_.now(), kMillisecond), stop);
      if (!answer) failure = connection->failure();
    }
    if (answer && answer->status == 401 && !token_anew && !access_.token_file.empty()) {
      token_anew = true;
      continue;
    }
    if (answer && !again(*answer, repeatable)) return read_answer(request, *std::move(answer));
    const Nanoseconds wait =
        answer && answer->retry_after ? *answer->retry_after : wait_before(attempt);
    const bool in_time = clock_.now() + wait < end;
    if (answer)
      last = std::move(answer);
    else if (failure.sent && !repeatable)
      return failure.error;  // it may have happened
    if (!in_time || stop.stop_requested()) {
      if (last) return read_answer(request, *std::move(last));
      return failure.error;
    }
    if (!wait_or_stop(wait, stop))
      return Error{Errc::kUnavailable, request.method + " " + request.path + ": stopped"};
  }
}

Result<Answer> ApiClient::stream(const std::string& path, Nanoseconds idle,
                                 const std::stop_token& stop, const HttpConnection::Piece& piece) {
  HttpRequest request;
  request.path = path;
  request.bearer_token = token(false);
  Lent connection(*this);
  std::optional<HttpAnswer> answer = connection->stream(request, idle, stop, piece);
  if (!answer) return connection->failure().error;
  if (answer->status == 401) token(true);
  return read_answer(request, *std::move(answer));
}

Result<Json> ApiClient::get(const std::string& path, const std::stop_token& stop) {
  HttpRequest request;
  request.path = path;
  return object_or_error(request, send(request, stop));
}

Result<Json> ApiClient::create(const std::string& path, const Json& object,
                               const std::stop_token& stop) {
  const HttpRequest request{"POST", path, object.dump(), "application/json", {}};
  return object_or_error(request, send(request, stop));
}

Result<Json> ApiClient::patch(const std::string& path, PatchKind kind, const Json& patch,
                              const std::stop_token& stop) {
  const HttpRequest request{"PATCH", path, patch.dump(), std::string(content_type(kind)), {}};
  return object_or_error(request, send(request, stop));
}

Status ApiClient::remove(const std::string& path, std::string_view uid,
                         const std::stop_token& stop) {
  HttpRequest request;
  request.method = "DELETE";
  request.path = path;
  if (!uid.empty()) {
    request.content_type = "application/json";
    request.body = Json::object()
                       .set("apiVersion", "v1")
                       .set("kind", "DeleteOptions")
                       .set("preconditions", Json::object().set("uid", std::string(uid)))
                       .dump();
  }
  const Result<Json> gone = object_or_error(request, send(request, stop));
  if (gone || gone.error().code == Errc::kNotFound) return {};
  return gone.error();
}

}  // namespace aliquot::kube
