// Where the collected data of other systems lies (traces, topologies): not part of this repository.
// Tests that want it skip with a word where it is absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace aliquot::test {

// $ALIQUOT_SHARED_DATA, else ../shared/data beside the source tree; nothing where that is absent.
inline std::optional<std::filesystem::path> shared_data() {
  const char* given = std::getenv("ALIQUOT_SHARED_DATA");  // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path path =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(ALIQUOT_SOURCE_DIR) / "../shared/data";
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return std::nullopt;
  return path;
}

}  // namespace aliquot::test
