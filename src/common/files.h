// Whole files: read, replace, make directories. Any thread. Errors name the path and the cause.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/result.h"

namespace aliquot {

// "what path: strerror(errno)" with the code that fits errno.
Error errno_error(std::string_view what, const std::filesystem::path& path);

// At most `limit` bytes; a longer file is an error, so that outside input is bounded.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit = 64u << 20);

// Readers see the old content or the new, never a part: written beside it, synced, renamed.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             unsigned mode = 0644);

// Makes the directory and its parents; the last one gets `mode`. An existing directory is kept.
Status make_directories(const std::filesystem::path& path, unsigned mode = 0755);

}  // namespace aliquot
