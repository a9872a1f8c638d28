// An HTTP server on a port of its own, for tests: every request goes to one function of the test.
// Wraps cpp-httplib, which fake_server.cc alone sees. The function is called from the server's
// threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace aliquot::kube {

struct FakeRequest {
  std::string method;
  std::string path;                          // without the query
  std::map<std::string, std::string> query;  // decoded
  std::string body;
  std::string authorization;
  std::string content_type;
};

struct FakeReply {
  int status = 200;
  std::string body;
  std::map<std::string, std::string> headers;
  // Where set, the body is what it writes; it returns when the stream is to end. `write` answers
  // false when the client has gone.
  using Write = std::function<bool(std::string_view)>;
  std::function<void(const Write&)> stream;
};

class FakeServer {
 public:
  using Handler = std::function<FakeReply(const FakeRequest&)>;
  explicit FakeServer(Handler handler);
  ~FakeServer();  // streams must have ended

  std::string url() const;
  std::vector<FakeRequest> requests() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace aliquot::kube
