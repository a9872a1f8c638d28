// Unix sockets of the broker: listening ones that replace their predecessors without a gap, and
// messages with descriptors. Functions; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::broker {

// A SEQPACKET socket listening at `path`. Bound under a temporary name and renamed over an old one,
// so that clients meet the old socket (which refuses) or the new, never none.
Result<UniqueFd> listen_at(const std::filesystem::path& path);

// Connects blocking, at most `timeout_ms`.
Result<UniqueFd> connect_to(const std::filesystem::path& path, int timeout_ms);

// Sends one message and descriptors without waiting; false when the peer does not take it.
bool send_message(int socket, std::span<const char> message, std::span<const int> descriptors = {});

}  // namespace aliquot::broker
