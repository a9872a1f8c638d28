#include "log/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <string>

namespace aliquot::log {
namespace {

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger logger(std::string_view part, spdlog::sink_ptr sink, Level least) {
  spdlog::logger result(std::string(part), std::move(sink));
  result.set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n: %v");
  result.set_level(level_of(least));
  result.flush_on(level_of(least));
  return result;
}

}  // namespace

struct Log::Target {
  spdlog::logger logger;
  Level least;
};

Log Log::to_stderr(std::string_view part, Level least) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return Log(std::make_shared<Target>(Target{logger(part, std::move(sink), least), least}));
}

Result<Log> Log::to_file(const std::filesystem::path& path, std::string_view part, Level least) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    return Log(std::make_shared<Target>(Target{logger(part, std::move(sink), least), least}));
  } catch (const spdlog::spdlog_ex& error) {
    return Error{Errc::kInvalid, "log to " + path.string() + ": " + error.what()};
  }
}

Log Log::named(std::string_view part) const {
  if (!target_) return {};
  auto sink = target_->logger.sinks().front();
  return Log(std::make_shared<Target>(
      Target{logger(part, std::move(sink), target_->least), target_->least}));
}

void Log::write(Level level, std::string_view text) const {
  if (target_) target_->logger.log(level_of(level), text);
}

}  // namespace aliquot::log
