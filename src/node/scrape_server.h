// ScrapeServer: GET /metrics and /healthz over HTTP/1.1, for Prometheus and for kubelet's probes.
//
// One thread, one connection at a time, each at most a second: a scrape is small and comes every
// few seconds; whoever dawdles is cut off. Leaves to others: what is answered. Anything but GET of
// the two paths is refused; nothing of a request is kept.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::node {

struct ScrapeAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
};

class ScrapeServer {
 public:
  // Called on the server's thread with the path and the Accept header.
  using Answer = std::function<ScrapeAnswer(std::string_view path, std::string_view accept)>;

  // "HOST:PORT"; port 0: any free one.
  static Result<std::unique_ptr<ScrapeServer>> serve(const std::string& address, Answer answer);
  ~ScrapeServer();
  ScrapeServer(const ScrapeServer&) = delete;
  ScrapeServer& operator=(const ScrapeServer&) = delete;

  unsigned port() const { return port_; }

 private:
  ScrapeServer(UniqueFd listener, unsigned port, Answer answer);
  void run();
  void serve_one(int connection);

  UniqueFd listener_, wake_;
  unsigned port_;
  Answer answer_;
  std::thread thread_;
};

}  // namespace aliquot::node
