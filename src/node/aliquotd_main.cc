// aliquotd: shares the GPUs of one machine for all its users, and for kubelet where there is one.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>

#include <malloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/files.h"
#include "common/state_directory.h"
#include "common/unique_fd.h"
#include "node/daemon.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualConfig = "/etc/aliquot/aliquotd.yaml";

struct Invocation {
  std::string config_path;
  std::map<std::string, std::string> flags;  // by key
};

// The file, then the flags over it.
Result<Config> config_of(const Invocation& invocation) {
  Config config;
  std::error_code code;
  const bool usual = invocation.config_path.empty();
  const fs::path path = usual ? kUsualConfig : invocation.config_path;
  if (!usual || fs::exists(path, code)) {
    const auto text = read_file(path, 1u << 20);
    if (!text) return text.error();
    if (const Status read = read_config(config, *text, path.string()); !read) return read.error();
  }
  for (const auto& [name, value] : invocation.flags)
    if (const Status set = set_key_of(config, name, value, "flags"); !set) return set.error();
  return config;
}

// ../lib/aliquot beside this program, and the probe in its own directory.
Result<Installation> installation() {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) return Error{Errc::kInternal, "read /proc/self/exe: " + code.message()};
  Installation found{program.parent_path() / "aliquot-probe",
                     program.parent_path() / "../lib/aliquot/libaliquot.so",
                     program.parent_path() / "aliquot-image-check"};
  for (const fs::path& path : {found.probe, found.library, found.image_check})
    if (!fs::exists(path, code))
      return Error{Errc::kNotFound,
                   "find " + path.string() + ": not there; install it beside " + program.string()};
  return found;
}

// The first socket that systemd holds for us; -1: none.
int inherited_socket() {
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  const bool ours = pid != nullptr && count != nullptr && std::to_string(getpid()) == pid &&
                    std::atoi(count) >= 1;
  return ours ? 3 : -1;
}

// What a service manager that asked for it is told ("READY=1").
void notify(const std::string& text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  ::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length);
}

void reload(const Invocation& invocation, Config& config, Daemon& daemon, const log::Log& log) {
  const auto read = config_of(invocation);
  if (!read) {
    log.error("reload: " + read.error().message + "; nothing is changed");
    return;
  }
  for (const std::string& key : keys_for_restart(config, *read))
    log.warning("reload: " + key + " takes effect at the next start");
  config.health_check_interval = read->health_check_interval;
  config.health_quiet = read->health_quiet;
  config.observe = read->observe;
  daemon.reload(config);
  log.info("reloaded");
}

// Signals come to a thread of their own; all others have them blocked.
void serve_signals(const sigset_t& signals, const std::function<void()>& on_hangup,
                   const std::function<void()>& on_end) {
  for (;;) {
    int signal = 0;
    if (::sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    on_hangup();
  }
  on_end();
}

Status run(Daemon& daemon, const fs::path& state_directory) {
  const fs::path pid_file = state_directory / "aliquotd.pid";
  Status written = write_file_atomically(pid_file, std::to_string(getpid()) + "\n");
  if (!written) return written;
  notify("READY=1");
  daemon.run();
  notify("STOPPING=1");
  ::unlink(pid_file.c_str());
  return {};
}

Status serve(const Invocation& invocation) {
  auto config = config_of(invocation);
  if (!config) return config.error();
  const auto installed = installation();
  if (!installed) return installed.error();
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  MonotonicClock clock;
  const log::Log log = log::Log::to_stderr("aliquotd", config->log_level);
  // Set while open() may still wait for a driver that does not answer.
  std::atomic<bool> ending = false;
  std::atomic<Daemon*> serving = nullptr;
  std::thread signalled([&] {
    serve_signals(
        signals,
        [&] {
          if (Daemon* one = serving) reload(invocation, *config, *one, log);
        },
        [&] {
          ending = true;
          if (Daemon* one = serving) one->stop();
        });
  });
  Daemon::Options options;
  options.config = *config;
  options.installation = *installed;
  options.machines = state_directory();
  options.inherited_listener = inherited_socket();
  options.give_up = &ending;
  options.log = log;
  auto daemon = Daemon::open(std::move(options), clock);
  Status served = daemon || ending ? Status() : Status(daemon.error());
  if (daemon) {
    serving = daemon->get();
    if (ending) (*daemon)->stop();  // it came before there was anything to stop
    served = run(**daemon, config->state_directory);
  }
  // Also when the loop was ended by an administrator's request.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): which is blocked; the thread waits for it
  ::pthread_kill(signalled.native_handle(), SIGTERM);
  signalled.join();
  if (!daemon) return served;
  daemon->reset();
  log.info("ended; leases stay for the next one");
  return served;
}

}  // namespace
}  // namespace aliquot::node

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws for an option that we named twice, say
int main(int argc, char** argv) {
  using aliquot::node::config_keys;
  CLI::App app("Shares the GPUs of one machine for all its users and for kubelet.");
  app.name("aliquotd");
  app.set_version_flag("--version", ALIQUOT_VERSION);
  aliquot::node::Invocation invocation;
  app.add_option("--config", invocation.config_path, "Configuration, YAML or INI")
      ->type_name("PATH");
  for (const auto& key : config_keys()) {
    std::string flag(key.name);
    std::ranges::replace(flag, '_', '-');
    app.add_option(
           "--" + flag,
           [&invocation, name = std::string(key.name)](const CLI::results_t& values) {
             invocation.flags[name] = values.back();
             return true;
           },
           std::string(key.help))
        ->type_name(std::string(key.value));
  }
  CLI11_PARSE(app, argc, argv);
  // Its two dozen threads take little and seldom: a heap for each would keep what its busiest
  // moment took, and the daemon would grow with every kind of moment that comes.
  mallopt(M_ARENA_MAX, 2);
  const aliquot::Status done = aliquot::node::serve(invocation);
  if (done) return 0;
  std::cerr << "aliquotd: " << done.error().message << '\n';
  return 1;
}
