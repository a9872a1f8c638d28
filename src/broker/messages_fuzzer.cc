// What tenants and administrators may send: any bytes, in any number of messages.
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "broker/codec.h"
#include "broker/lease_socket.h"
#include "broker/listener.h"

namespace {

using namespace aliquot;
using namespace aliquot::broker;

struct Served {
  MonotonicClock clock;
  Loop loop{clock};
  std::filesystem::path directory;
  std::unique_ptr<Lease> lease;
  std::unique_ptr<LeaseSocket> socket;

  Served() {
    std::string name = (std::filesystem::temp_directory_path() / "aliquot-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    directory = name;
    LeaseRequest request;
    request.name = "fuzz";
    request.slots = 8;
    auto made = Lease::create(directory / "fuzz", request, std::vector<LeaseGpu>(1), {});
    if (!made) std::abort();
    lease = std::move(*made);
    auto opened = LeaseSocket::open(*lease, loop, IdentityPath::kAuto, {});
    if (!opened) std::abort();
    socket = std::move(*opened);
  }
  ~Served() {
    socket.reset();
    std::filesystem::remove_all(directory);
  }
};

template <typename T>
void check_decoding(std::string_view bytes) {
  T value;
  // What is understood must come out as it went in.
  if (decode(bytes, value) && encoded(value) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_decoding<LeaseRequest>(bytes);
  check_decoding<ShareChange>(bytes);
  check_decoding<LeasePage>(bytes);
  check_decoding<Error>(bytes);

  static Served served;
  const auto path = served.lease->files().tenant_directory() / "socket";
  auto connection = connect_to(path, 10);
  // Who connects too often is held off until the broker's next look.
  for (int i = 0; !connection && i < 100; ++i) {
    served.socket->tidy();
    served.loop.turn(10);
    connection = connect_to(path, 10);
  }
  if (!connection) std::abort();
  // Half of the inputs are taken for the rest of a message whose beginning is right.
  wire::TenantRequest request;
  if (size % 2 == 0) {
    std::memcpy(&request.ask, data, std::min(size, sizeof request - 8));
    send_message(connection->get(), {reinterpret_cast<const char*>(&request), sizeof request});
  } else {
    send_message(connection->get(), bytes);
  }
  served.loop.turn(0);
  served.loop.turn(0);
  connection->reset();
  served.loop.turn(0);
  if (served.socket->connections() > 600) std::abort();
  return 0;
}
