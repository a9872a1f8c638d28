#include "simdriver/channel/client.h"

#include <dlfcn.h>
#include <poll.h>

#include <cstdlib>
#include <system_error>

#include "common/state_directory.h"
#include "simdriver/channel/socket.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

bool answers(const fs::path& socket) { return connect_to(socket).has_value(); }

std::optional<fs::path> only_running_machine() {
  std::optional<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(state_directory() / "sim", error)) {
    const fs::path socket = entry.path() / "socket";
    if (!fs::exists(socket, error) || !answers(socket)) continue;
    if (found) return std::nullopt;  // which one? Better none than a wrong one
    found = socket;
  }
  return found;
}

}  // namespace

std::optional<fs::path> find_server_socket(const void* address_in_library) {
  Dl_info where{};
  std::error_code error;
  if (dladdr(address_in_library, &where) != 0 && where.dli_fname != nullptr) {
    fs::path beside = fs::path(where.dli_fname).parent_path().parent_path() / "socket";
    // A link (of a driver root) whose machine is gone leads to no other machine.
    if (fs::exists(beside, error) || fs::is_symlink(beside, error)) return beside;
  }
  if (const char* name = std::getenv("ALIQUOT_SIM"); name != nullptr && *name != 0) {
    fs::path named = state_directory() / "sim" / name / "socket";
    if (fs::exists(named, error)) return named;
    return std::nullopt;
  }
  return only_running_machine();
}

std::optional<Client> Client::connect(const fs::path& socket) {
  Result<UniqueFd> connected = connect_to(socket);
  if (!connected) return std::nullopt;
  return Client(std::move(*connected));
}

std::optional<Answer> Client::ask(Op op, std::span<const std::byte> payload,
                                  std::span<const int> fds) {
  std::vector<std::byte> bytes(sizeof(RequestHeader) + payload.size());
  const RequestHeader header{op, static_cast<std::uint32_t>(payload.size())};
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof(header), payload.data(), payload.size());
  if (!send_datagram(socket_.get(), bytes, fds)) return std::nullopt;
  Result<Datagram> got = receive_datagram(socket_.get());
  ReplyHeader reply{};
  if (!got || got->bytes.size() < sizeof(reply)) return std::nullopt;
  std::memcpy(&reply, got->bytes.data(), sizeof(reply));
  if (reply.payload_bytes != got->bytes.size() - sizeof(reply)) return std::nullopt;
  Answer answer;
  answer.result = reply.result;
  answer.cost_ns = reply.cost_ns;
  answer.payload.assign(got->bytes.begin() + sizeof(reply), got->bytes.end());
  answer.fds = std::move(got->fds);
  return answer;
}

bool Client::alive() const {
  pollfd socket{socket_.get(), POLLRDHUP, 0};
  return poll(&socket, 1, 0) == 0;
}

}  // namespace aliquot::simdriver
