#include "cli/tenant.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "common/files.h"
#include "common/pidfd.h"

namespace aliquot::cli {
namespace {

// How the child ends when nothing was executed; why, it has written into the pipe.
constexpr int kNotReady = 1, kCannotRun = 126, kNoSuchCommand = 127;

constexpr int kLookEveryMs = 500;

constexpr std::array kPassedOn{SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};

sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

void prepend(const char* variable, const std::string& value) {
  const char* old = std::getenv(variable);
  const std::string text = old != nullptr && *old != '\0' ? value + ':' + old : value;
  ::setenv(variable, text.c_str(), 1);
}

Status become_tenant(const TenantLaunch& launch) {
  if (launch.contained) {
    if (const Status entered = enter_tenant_namespace(launch.view); !entered) return entered;
    ::unsetenv("ALIQUOT_LEASE");
    // Where the machine has no preload file to put it in; the names alone hold without it.
    if (::access("/etc/ld.so.preload", F_OK) != 0) prepend("LD_PRELOAD", kTenantLibrary);
    // Only for programs that look through directories themselves, as tinygrad does.
    prepend("LD_LIBRARY_PATH", std::string(kTenantRoot) + "/lib");
  } else {
    ::setenv("ALIQUOT_LEASE", launch.view.lease.c_str(), 1);
    prepend("LD_PRELOAD", launch.view.library.string());
    prepend("LD_LIBRARY_PATH", launch.names.string());
  }
  ::unsetenv("ALIQUOT_SIM");  // the lease says which driver
  if (launch.numa) return bind_here(*launch.numa);
  return {};
}

// In the child; never returns. What goes wrong before the exec goes to the parent through `report`.
[[noreturn]] void run_tenant(const TenantLaunch& launch, const UniqueFd& report) {
  const sigset_t set = passed_on();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  Status ready = become_tenant(launch);
  int status = kNotReady;
  if (ready) {
    std::vector<char*> argv;
    for (const std::string& word : launch.command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    status = errno == ENOENT ? kNoSuchCommand : kCannotRun;
    ready = errno_error("run", launch.command[0]);
  }
  const std::string& message = ready.error().message;
  (void)!::write(report.get(), message.data(), message.size());
  ::_exit(status);
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void pass_on(int signals, pid_t tenant) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == sizeof info) {
    // What the terminal sent, the command got itself.
    const auto signal = static_cast<int>(info.ssi_signo);
    if (info.ssi_code == SI_KERNEL && (signal == SIGINT || signal == SIGQUIT)) continue;
    ::kill(tenant, signal);
  }
}

}  // namespace

Result<pid_t> launch_tenant(const TenantLaunch& launch) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make", "a pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const sigset_t set = passed_on();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  // Daemons of the run stay our descendants, and so of the lease.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork for", launch.command[0]);
  if (child == 0) run_tenant(launch, writer);
  writer.reset();
  std::array<char, 1024> message{};
  ssize_t length = 0;
  do length = ::read(reader.get(), message.data(), message.size());
  while (length < 0 && errno == EINTR);
  if (length <= 0) return child;  // closed by a successful exec
  int status = 0;
  ::waitpid(child, &status, 0);
  const Errc code = exit_status(status) == kNoSuchCommand ? Errc::kNotFound
                    : exit_status(status) == kCannotRun   ? Errc::kDenied
                                                          : Errc::kUnavailable;
  return Error{code, std::string(message.data(), static_cast<std::size_t>(length))};
}

int watch_tenant(pid_t tenant, const TenantWatch& watch) {
  const sigset_t set = passed_on();
  const UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  const UniqueFd tenant_fd = open_pidfd(tenant);
  int broker = watch.broker_pidfd;
  for (;;) {
    std::array<pollfd, 3> fds{{{tenant_fd.get(), POLLIN, 0},
                               {signals.get(), POLLIN, 0},
                               {broker, POLLIN, 0}}};  // -1 is ignored
    const int ready = ::poll(fds.data(), fds.size(), kLookEveryMs);
    if (ready < 0 && errno != EINTR) break;
    if (fds[1].revents != 0) pass_on(signals.get(), tenant);
    int status = 0;
    // Every child: as subreaper we inherit the run's daemons. Without a pidfd (an old kernel) this
    // regular look is what ends the wait.
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == tenant) return exit_status(status);
    if (fds[2].revents != 0) broker = watch.broker_ended();
    if (ready == 0 && watch.look_around) watch.look_around();
  }
  int status = 0;
  ::waitpid(tenant, &status, 0);
  return exit_status(status);
}

}  // namespace aliquot::cli
