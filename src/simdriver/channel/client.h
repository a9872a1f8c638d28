// A client library's end of the channel: finds the machine's server and sends it requests, one at
// a time. The caller holds its own lock around a request; after fork the child must not use it.
#pragma once

#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "common/unique_fd.h"
#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {

struct Answer {
  std::int32_t result = 0;
  std::uint64_t cost_ns = 0;
  std::vector<std::byte> payload;
  std::vector<UniqueFd> fds;

  template <typename T>
  std::optional<T> as() const {
    if (payload.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, payload.data(), sizeof(T));
    return value;
  }
};

// The server's socket for a library that holds `address_in_library`: ../socket beside the
// directory it was loaded from; else $ALIQUOT_SIM in the state directory; else the only running
// machine. Nothing: there is none, or several.
std::optional<std::filesystem::path> find_server_socket(const void* address_in_library);

class Client {
 public:
  // Nothing: no server answers there.
  static std::optional<Client> connect(const std::filesystem::path& socket);

  // Nothing: the server is gone. A result other than 0 has no payload.
  std::optional<Answer> ask(Op op, std::span<const std::byte> payload = {},
                            std::span<const int> fds = {});
  template <typename T>
  std::optional<Answer> ask(Op op, const T& payload, std::span<const int> fds = {}) {
    return ask(op, std::as_bytes(std::span(&payload, 1)), fds);
  }
  // Whether the other end still holds the connection. Any thread, without a lock.
  bool alive() const;

 private:
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace aliquot::simdriver
