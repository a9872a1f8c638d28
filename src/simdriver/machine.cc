#include "simdriver/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>

#include "common/clock.h"
#include "common/files.h"
#include "common/pidfd.h"
#include "common/state_directory.h"
#include "simdriver/channel/socket.h"
#include "simdriver/host_tree.h"
#include "simdriver/library_versions.h"
#include "simdriver/machine_json.h"
#include "simdriver/presets.h"
#include "simdriver/server/machine_state.h"
#include "simdriver/server/server.h"

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

fs::path machines_directory() { return state_directory() / "sim"; }

bool valid_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

// The process that serves the socket; 0: nobody does.
pid_t server_of(const fs::path& directory) {
  const Result<UniqueFd> socket = connect_to(directory / "socket");
  if (!socket) return 0;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

// <source>/name.1 becomes <to>/name.VERSION with name.1 and name as links to it.
Status install_library(const fs::path& source, const fs::path& to, const std::string& name,
                       const DriverVersion& driver) {
  const fs::path built = source / (name + ".1");
  std::error_code error;
  if (!fs::exists(built, error)) return {};
  const std::string versioned = name + "." + driver.driver;
  Status copied = copy_library(built, to / versioned, [&](std::string_view symbol) {
    return absent_in_version(symbol, driver.cuda);
  });
  if (!copied) return copied;
  fs::create_symlink(versioned, to / (name + ".1"), error);
  if (!error) fs::create_symlink(name + ".1", to / name, error);
  if (error) {
    return Error{Errc::kInternal, "install " + (to / versioned).string() + ": " + error.message()};
  }
  return {};
}

// Half of what the host has free, or what ALIQUOT_SIM_HOST_BYTES says: simulated memory never makes
// the host run out.
std::uint64_t host_budget_bytes() {
  if (const char* text = std::getenv("ALIQUOT_SIM_HOST_BYTES")) {
    std::uint64_t bytes = 0;
    const char* end = text + std::strlen(text);
    if (std::from_chars(text, end, bytes).ptr == end && end != text) return bytes;
  }
  constexpr std::uint64_t kFallback = 1ull << 30;
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  while (info >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024 / 2;
    info.ignore(64, '\n');
  }
  return kFallback;
}

// The server's own descriptors: five a client and context, one a shared block.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

UniqueFd signals_to_stop() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// In the child: a process of its own, whose output goes to the machine's log.
[[noreturn]] void become_server(const fs::path& directory) {
  setsid();
  const UniqueFd null(open("/dev/null", O_RDONLY));
  const UniqueFd log(
      open((directory / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (null) dup2(null.get(), STDIN_FILENO);
  if (log) {
    dup2(log.get(), STDOUT_FILENO);
    dup2(log.get(), STDERR_FILENO);
  }
  syscall(SYS_close_range, 3u, ~0u, 0u);
  const Status served = serve_machine(directory);
  if (!served) {
    const std::string line = served.error().message + "\n";
    [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(served ? 0 : 1);
}

Error start_failure(const fs::path& directory, const std::string& name) {
  const Result<std::string> log = read_file(directory / "log");
  std::string why = log && !log->empty() ? *log : "the device server did not answer";
  while (!why.empty() && why.back() == '\n') why.pop_back();
  return Error{Errc::kUnavailable, "start simulated machine " + name + ": " + why};
}

}  // namespace

fs::path machine_directory(const std::string& name) { return machines_directory() / name; }

Status lay_out_machine(const MachineSpec& spec, const fs::path& libraries) {
  if (!valid_name(spec.name)) {
    return Error{Errc::kInvalid, "machine name '" + spec.name +
                                     "': use letters, digits, '-', '_' and '.', at most 64"};
  }
  const fs::path directory = machine_directory(spec.name);
  if (server_of(directory) != 0) {
    return Error{Errc::kInvalid, "simulated machine " + spec.name +
                                     " runs already; end it with `aliquot sim down " + spec.name +
                                     "`"};
  }
  std::error_code error;
  fs::remove_all(directory, error);  // left over from one that was killed
  if (Status made = make_directories(machines_directory(), 0700); !made) return made;
  if (Status made = make_directories(directory / "lib", 0755); !made) return made;
  for (const char* library : {"libcuda.so", "libnvidia-ml.so"}) {
    const Status installed = install_library(libraries, directory / "lib", library, spec.driver);
    if (!installed) return installed;
  }
  if (Status written = write_host_tree(spec, directory); !written) return written;
  return write_file_atomically(directory / "machine.json", to_json(spec).dump(2) + "\n");
}

Status serve_machine(const fs::path& directory) {
  Result<MachineSpec> spec = read_machine(directory / "machine.json");
  if (!spec) return spec.error();
  raise_descriptor_limit();
  const UniqueFd stop = signals_to_stop();
  const MonotonicClock clock;
  auto machine = MachineState::make(std::move(*spec), clock, host_budget_bytes());
  if (!machine) return machine.error();
  Status wrote = write_file_atomically(directory / "pid", std::to_string(getpid()) + "\n");
  if (!wrote) return wrote;
  // The socket last: whoever can connect finds all the rest.
  Result<UniqueFd> listener = listen_at(directory / "socket");
  if (!listener) return listener.error();
  Server server(**machine, std::move(*listener));
  return server.run(stop.get());
}

Result<RunningMachine> start_machine(const MachineSpec& spec, const fs::path& libraries) {
  if (Status laid = lay_out_machine(spec, libraries); !laid) return laid.error();
  const fs::path directory = machine_directory(spec.name);
  const pid_t child = fork();
  if (child < 0) return errno_error("fork", directory);
  if (child == 0) become_server(directory);
  constexpr int kTriesEvery5Ms = 2000;
  for (int i = 0; i < kTriesEvery5Ms; ++i) {
    if (server_of(directory) != 0) return RunningMachine{spec.name, directory, child};
    if (waitpid(child, nullptr, WNOHANG) == child) break;
    usleep(5000);
  }
  return start_failure(directory, spec.name);
}

Result<std::vector<RunningMachine>> list_machines() {
  std::vector<RunningMachine> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machines_directory(), error)) {
    const pid_t pid = server_of(entry.path());
    if (pid != 0) found.push_back({entry.path().filename().string(), entry.path(), pid});
  }
  std::ranges::sort(found, {}, &RunningMachine::name);
  return found;
}

Status stop_machine(const std::string& name) {
  const fs::path directory = machine_directory(name);
  const pid_t pid = valid_name(name) ? server_of(directory) : 0;
  if (pid == 0) {
    return Error{Errc::kNotFound,
                 "no simulated machine " + name + " runs; `aliquot sim list` shows those that do"};
  }
  const UniqueFd process = open_pidfd(pid);
  if (!process || !signal_process(process, SIGTERM)) {
    return errno_error("end", directory);
  }
  pollfd gone{process.get(), POLLIN, 0};
  constexpr int kPatienceMs = 5000;
  if (poll(&gone, 1, kPatienceMs) != 1) {
    return Error{Errc::kUnavailable, "end simulated machine " + name + ": process " +
                                         std::to_string(pid) + " does not stop; kill it"};
  }
  waitpid(pid, nullptr, WNOHANG);  // ours, where this process began it
  std::error_code error;
  fs::remove_all(directory, error);
  return {};
}

}  // namespace aliquot::simdriver
