// Log: one line per event, for daemons and tools. Wraps spdlog; nothing else includes it.
//
// Lines go to stderr or a file, never to stdout, as "TIME LEVEL PART: text". A Log is a value: copy
// it freely, every copy writes to the same place. Any thread; a line that cannot be written is
// lost.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "common/result.h"

namespace aliquot::log {

enum class Level { kDebug, kInfo, kWarning, kError };

class Log {
 public:
  // Says nothing.
  Log() = default;

  static Log to_stderr(std::string_view part, Level least = Level::kInfo);
  static Result<Log> to_file(const std::filesystem::path& path, std::string_view part,
                             Level least = Level::kInfo);

  // The same place under another name.
  Log named(std::string_view part) const;

  void debug(std::string_view text) const { write(Level::kDebug, text); }
  void info(std::string_view text) const { write(Level::kInfo, text); }
  void warning(std::string_view text) const { write(Level::kWarning, text); }
  void error(std::string_view text) const { write(Level::kError, text); }

 private:
  struct Target;
  explicit Log(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  void write(Level level, std::string_view text) const;

  std::shared_ptr<Target> target_;  // shared by copies; null: silent
};

}  // namespace aliquot::log
