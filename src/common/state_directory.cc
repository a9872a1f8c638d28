#include "common/state_directory.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace aliquot {

std::filesystem::path state_directory() {
  if (const char* chosen = std::getenv("ALIQUOT_STATE_DIR"); chosen != nullptr && *chosen != '\0')
    return chosen;
  if (geteuid() == 0) return "/run/aliquot/root";
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0')
    return std::filesystem::path(runtime) / "aliquot";
  return "/tmp/aliquot-" + std::to_string(geteuid());
}

std::filesystem::path daemon_directory() {
  if (const char* named = std::getenv("ALIQUOT_DAEMON_DIR"); named != nullptr && *named != '\0')
    return named;
  const char* apart = std::getenv("ALIQUOT_STATE_DIR");
  return apart != nullptr && *apart != '\0' ? "" : "/run/aliquot";
}

}  // namespace aliquot
