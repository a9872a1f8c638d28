#include "broker/gpu_claims.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/files.h"

namespace aliquot::broker {

Status GpuClaims::claim(const std::string& uuid) {
  if (held_.contains(uuid)) return {};
  const std::string name = "aliquot-gpu-" + uuid;
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!fd || name.size() + 1 > sizeof address.sun_path) return errno_error("claim", name);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading 0: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno != EADDRINUSE) return errno_error("claim", name);
    return Error{Errc::kUnavailable, "share gpu " + uuid +
                                         ": another user's broker shares it already; start "
                                         "aliquotd, which serves all users"};
  }
  held_.emplace(uuid, std::move(fd));
  return {};
}

void GpuClaims::keep_only(const std::set<std::string>& uuids) {
  std::erase_if(held_, [&](const auto& claim) { return !uuids.contains(claim.first); });
}

}  // namespace aliquot::broker
