// Datagrams with descriptors over a connected SEQPACKET socket. Any thread; one datagram is never
// mixed with another.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::simdriver {

struct Datagram {
  std::vector<std::byte> bytes;  // empty: the other end is gone
  std::vector<UniqueFd> fds;
};

// Both ends of a connection by path; a path longer than sun_path goes through /proc/self/fd.
Result<UniqueFd> listen_at(const std::filesystem::path& path);
Result<UniqueFd> connect_to(const std::filesystem::path& path);

// Does not wait: kExhausted when the receiver reads too slowly, kUnavailable when it is gone.
Status send_datagram(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
// Waits unless the socket is non-blocking (then kExhausted when there is nothing to read).
Result<Datagram> receive_datagram(int socket);

}  // namespace aliquot::simdriver
