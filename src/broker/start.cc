// Client::start_or_connect: one broker per state directory, whoever races to start it.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "broker/client.h"
#include "common/files.h"

namespace aliquot::broker {
namespace {

namespace fs = std::filesystem;

constexpr int kStartMs = 5000;
constexpr int kPauseMs = 5;

// In the child of a fork: only async-signal-safe calls. Ends by exec.
[[noreturn]] void become_broker(char* const* arguments, char* const* environment, int null,
                                int log) {
  setsid();
  if (chdir("/") != 0) _exit(126);
  dup2(null, 0);
  dup2(null, 1);
  dup2(log, 2);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // What the caller had open is not the broker's: a pipe kept open would hang its reader.
  close_range(3, ~0u, 0);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

// Environment of the broker: the caller's, with the state directory fixed and without the tenant's
// variables.
std::vector<std::string> broker_environment(const fs::path& state_directory) {
  std::vector<std::string> result{"ALIQUOT_STATE_DIR=" + state_directory.string()};
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    if (!entry.starts_with("ALIQUOT_STATE_DIR=") && !entry.starts_with("ALIQUOT_LEASE=") &&
        !entry.starts_with("LD_PRELOAD="))
      result.emplace_back(entry);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Result<pid_t> spawn(const fs::path& state_directory, std::vector<std::string> command) {
  const fs::path log_path = state_directory / "broker.log";
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null || !log) return errno_error("open", log_path);
  std::vector<std::string> environment = broker_environment(state_directory);
  const std::vector<char*> argv = pointers(command), envp = pointers(environment);
  const pid_t pid = fork();
  if (pid < 0) return errno_error("start", command.front());
  if (pid > 0) return pid;
  become_broker(argv.data(), envp.data(), null.get(), log.get());
}

// The last line of the broker's log, for the error that says why it does not answer.
std::string last_words(const fs::path& state_directory) {
  const auto text = read_file(state_directory / "broker.log");
  if (!text || text->empty()) return {};
  const std::size_t end = text->find_last_not_of('\n');
  const std::size_t start = text->rfind('\n', end);
  return ": " + text->substr(start == std::string::npos ? 0 : start + 1, end - start);
}

}  // namespace

Result<Client> Client::start_or_connect(const fs::path& state_directory,
                                        const std::vector<std::string>& command) {
  if (auto client = connect(state_directory); client) return client;
  if (const Status made = make_directories(state_directory, 0700); !made) return made.error();
  const fs::path path = state_directory / "start.lock";
  const UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  int rc = 0;
  do {
    rc = lock ? flock(lock.get(), LOCK_EX) : -1;
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return errno_error("lock", path);
  if (auto client = connect(state_directory); client) return client;  // another one was faster
  const auto pid = spawn(state_directory, command);
  if (!pid) return pid.error();
  for (int waited = 0; waited < kStartMs; waited += kPauseMs) {
    if (auto client = connect(state_directory); client) return client;
    if (int status = 0; waitpid(*pid, &status, WNOHANG) == *pid)
      return Error{Errc::kUnavailable, "start the broker (" + command.front() +
                                           "): it ended at once" + last_words(state_directory)};
    poll(nullptr, 0, kPauseMs);
  }
  return Error{Errc::kUnavailable, "start the broker (" + command.front() +
                                       "): it does not answer within 5 s" +
                                       last_words(state_directory)};
}

}  // namespace aliquot::broker
