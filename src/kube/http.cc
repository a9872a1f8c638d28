#include "kube/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace aliquot::kube {

namespace {

constexpr std::size_t kLargestBody = 64u << 20;
constexpr long kConnectMilliseconds = 5'000;
constexpr int kStopped = -1;  // beside CURLcode
constexpr int kSilent = -2;

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeHeaders>;

void add_header(Headers& headers, const std::string& line) {
  curl_slist* const held = headers.release();
  curl_slist* const longer = curl_slist_append(held, line.c_str());
  headers.reset(longer != nullptr ? longer : held);
}

// Only seconds; the form with a date is not used by Kubernetes.
std::optional<Nanoseconds> retry_after_of(std::string_view header) {
  constexpr std::string_view kName = "retry-after:";
  if (header.size() < kName.size() ||
      !std::ranges::equal(header.substr(0, kName.size()), kName, [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
      }))
    return std::nullopt;
  header.remove_prefix(kName.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  const char* const begin = header.data();
  Nanoseconds seconds = 0;
  const auto [stop, error] = std::from_chars(begin, begin + header.size(), seconds);
  if (error != std::errc() || stop == begin || seconds < 0 || seconds > 3600) return std::nullopt;
  return seconds * kSecond;
}

bool never_sent(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
         code == CURLE_SSL_CACERT_BADFILE;
}

}  // namespace

struct HttpConnection::Handles {
  CURL* easy = curl_easy_init();
  CURLM* multi = curl_multi_init();
  std::array<char, CURL_ERROR_SIZE> words{};
  ~Handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
};

// One request under way: where its bytes go.
struct HttpConnection::Transfer {
  CURL* easy = nullptr;
  const Piece* piece = nullptr;  // null: into the answer's body
  Nanoseconds deadline = 0;      // 0: none, a stream
  Nanoseconds idle = 0;          // 0: no bound
  Nanoseconds last_piece = MonotonicClock().now();
  HttpAnswer answer;
  Headers headers;
  bool ended_by_piece = false;

  static std::size_t body(const char* data, std::size_t, std::size_t size, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    transfer.last_piece = MonotonicClock().now();
    long status = 0;
    curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer.piece != nullptr && status >= 200 && status < 300) {
      if ((*transfer.piece)({data, size})) return size;
      transfer.ended_by_piece = true;
      return 0;
    }
    if (transfer.answer.body.size() + size > kLargestBody) return 0;
    transfer.answer.body.append(data, size);
    return size;
  }

  static std::size_t header(const char* data, std::size_t, std::size_t size, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    if (const auto wait = retry_after_of({data, size})) transfer.answer.retry_after = wait;
    return size;
  }
};

HttpConnection::HttpConnection(const Access& access)
    : access_(access), handles_(std::make_unique<Handles>()) {}
HttpConnection::~HttpConnection() = default;

std::optional<HttpAnswer> HttpConnection::exchange(const HttpRequest& request, Nanoseconds deadline,
                                                   const std::stop_token& stop) {
  Transfer transfer;
  transfer.deadline = deadline;
  return perform(request, transfer, stop);
}

std::optional<HttpAnswer> HttpConnection::stream(const HttpRequest& request, Nanoseconds idle,
                                                 const std::stop_token& stop, const Piece& piece) {
  Transfer transfer;
  transfer.piece = &piece;
  transfer.idle = idle;
  return perform(request, transfer, stop);
}

namespace {

void set_pem(CURL* easy, const Pem& pem, CURLoption file, CURLoption blob) {
  if (!pem.text.empty()) {
    curl_blob bytes{const_cast<char*>(pem.text.data()), pem.text.size(), CURL_BLOB_COPY};
    curl_easy_setopt(easy, blob, &bytes);
  } else if (!pem.file.empty()) {
    curl_easy_setopt(easy, file, pem.file.c_str());
  }
}

// "https://api.example:6443" with that name looked up as `address`'s host: the certificate is
// checked against the name, the connection goes to the host of `server`.
std::string connect_to(const std::string& name, const std::string& server) {
  const std::size_t host = server.find("://");
  return name + "::" + (host == std::string::npos ? server : server.substr(host + 3));
}

std::string url_of(const Access& access, const std::string& path) {
  if (access.tls_server_name.empty()) return access.server + path;
  return "https://" + access.tls_server_name + path;
}

void set_tls(CURL* easy, const Access& access, Headers& redirections) {
  set_pem(easy, access.authority, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
  set_pem(easy, access.client_certificate, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
  set_pem(easy, access.client_key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
  if (access.insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  if (!access.tls_server_name.empty()) {
    add_header(redirections, connect_to(access.tls_server_name, access.server));
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, redirections.get());
  }
}

}  // namespace

void HttpConnection::set_up(const HttpRequest& request, Transfer& transfer) {
  CURL* const easy = handles_->easy;
  curl_easy_setopt(easy, CURLOPT_URL, url_of(access_, request.path).c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, access_.proxy.c_str());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "aliquot");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handles_->words.data());
  if (transfer.deadline > 0)
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, std::max<long>(1, transfer.deadline / kMillisecond));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Transfer::body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, Transfer::header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  add_header(transfer.headers, "Accept: application/json");
  if (!request.bearer_token.empty())
    add_header(transfer.headers, "Authorization: Bearer " + request.bearer_token);
  if (request.method != "GET") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (!request.body.empty() || request.method != "DELETE") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
      add_header(transfer.headers, "Content-Type: " + request.content_type);
      add_header(transfer.headers, "Expect:");  // no round trip of its own for a large body
    }
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
}

int HttpConnection::wait(const Transfer& transfer, const std::stop_token& stop) {
  CURLM* const multi = handles_->multi;
  const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
  while (true) {
    int running = 0;
    curl_multi_perform(multi, &running);
    if (running == 0) break;
    if (stop.stop_requested()) return kStopped;
    Nanoseconds most = kSecond;
    if (transfer.idle > 0) {
      const Nanoseconds left = transfer.last_piece + transfer.idle - MonotonicClock().now();
      if (left <= 0) return kSilent;
      most = std::min(most, left);
    }
    curl_multi_poll(multi, nullptr, 0, static_cast<int>(most / kMillisecond) + 1, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left))
    if (message->msg == CURLMSG_DONE) return message->data.result;
  return CURLE_RECV_ERROR;
}

std::optional<HttpAnswer> HttpConnection::perform(const HttpRequest& request, Transfer& transfer,
                                                  const std::stop_token& stop) {
  CURL* const easy = handles_->easy;
  curl_easy_reset(easy);  // keeps its connections
  handles_->words[0] = '\0';
  transfer.easy = easy;
  Headers redirections;
  set_up(request, transfer);
  set_tls(easy, access_, redirections);
  curl_multi_add_handle(handles_->multi, easy);
  const int outcome = wait(transfer, stop);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(handles_->multi, easy);
  transfer.answer.status = static_cast<int>(status);
  if (outcome == CURLE_OK || (outcome == CURLE_WRITE_ERROR && transfer.ended_by_piece))
    return std::move(transfer.answer);

  const std::string what = request.method + " " + access_.server + request.path + ": ";
  if (outcome == kStopped || outcome == kSilent) {
    const char* why = outcome == kStopped ? "stopped" : "nothing came for too long";
    failure_ = {{Errc::kUnavailable, what + why}, true};
  } else {
    const auto code = static_cast<CURLcode>(outcome);
    const std::string why =
        handles_->words[0] != '\0' ? handles_->words.data() : curl_easy_strerror(code);
    failure_ = {{Errc::kUnavailable, what + why}, !never_sent(code)};
  }
  return std::nullopt;
}

std::string query_escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

}  // namespace aliquot::kube
