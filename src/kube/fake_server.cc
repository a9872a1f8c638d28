#include "kube/fake_server.h"

#include <httplib.h>

#include <thread>

namespace aliquot::kube {

struct FakeServer::Inside {
  Handler handler;
  httplib::Server server;
  int port = 0;
  std::thread thread;
  mutable std::mutex mutex;  // guards requests
  std::vector<FakeRequest> requests;

  void answer(const httplib::Request& in, httplib::Response& out) {
    FakeRequest request{in.method,
                        in.path,
                        {in.params.begin(), in.params.end()},
                        in.body,
                        in.get_header_value("Authorization"),
                        in.get_header_value("Content-Type")};
    {
      const std::lock_guard lock(mutex);
      requests.push_back(request);
    }
    const FakeReply reply = handler(request);
    out.status = reply.status;
    for (const auto& [name, value] : reply.headers) out.set_header(name, value);
    if (!reply.stream) {
      out.set_content(reply.body, "application/json");
      return;
    }
    out.set_chunked_content_provider(
        "application/json", [stream = reply.stream](std::size_t, httplib::DataSink& sink) {
          stream([&sink](std::string_view piece) {
            return sink.is_writable() && sink.write(piece.data(), piece.size());
          });
          sink.done();
          return true;
        });
  }
};

FakeServer::FakeServer(Handler handler) : inside_(std::make_unique<Inside>()) {
  inside_->handler = std::move(handler);
  const auto answer = [inside = inside_.get()](const httplib::Request& in, httplib::Response& out) {
    inside->answer(in, out);
  };
  inside_->server.Get(".*", answer);
  inside_->server.Post(".*", answer);
  inside_->server.Patch(".*", answer);
  inside_->server.Delete(".*", answer);
  inside_->port = inside_->server.bind_to_any_port("127.0.0.1");
  inside_->thread = std::thread([inside = inside_.get()] { inside->server.listen_after_bind(); });
  while (!inside_->server.is_running()) std::this_thread::yield();
}

FakeServer::~FakeServer() {
  inside_->server.stop();
  inside_->thread.join();
}

std::string FakeServer::url() const { return "http://127.0.0.1:" + std::to_string(inside_->port); }

std::vector<FakeRequest> FakeServer::requests() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->requests;
}

}  // namespace aliquot::kube
