#include "inventory/driver_choice.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "common/unique_fd.h"
#include "format/fields.h"
#include "format/json.h"

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSimulated = "sim:";

// A machine runs when its server takes a connection: a stale directory does not.
bool answers(const fs::path& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name = socket_path.string();
  UniqueFd directory;  // of a path too long for a socket's address
  if (name.size() >= sizeof address.sun_path) {
    directory.reset(::open(socket_path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return false;
    name = "/proc/self/fd/" + std::to_string(directory.get()) + "/socket";
  }
  std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A full backlog (EAGAIN) is an answer too: somebody listens.
  return fd &&
         (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
          errno == EAGAIN);
}

std::optional<Driver> machine_called(const fs::path& state_directory, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.'))
    return std::nullopt;
  const fs::path directory = state_directory / "sim" / name;
  if (!answers(directory / "socket")) return std::nullopt;
  return Driver{std::string(kSimulated) + name, directory, directory / "lib/libcuda.so.1",
                directory / "lib/libnvidia-ml.so.1"};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Error no_machine(const fs::path& state_directory, const std::string& how, const std::string& name) {
  const auto running = running_machines(state_directory);
  return {Errc::kNotFound, how + ' ' + name + ": no such simulated machine runs (" +
                               (running.empty() ? "none does" : "running: " + joined(running)) +
                               "; start one with: aliquot sim up --node PRESET --name " + name +
                               ")"};
}

fs::path loaded_path(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr)
    return {};
  std::error_code code;
  return fs::absolute(map->l_name, code);
}

}  // namespace

std::string Driver::title() const {
  return simulated() ? "simulated machine " + name.substr(kSimulated.size()) : "the NVIDIA driver";
}

std::vector<std::string> running_machines(const fs::path& state_directory) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(state_directory / "sim", code))
    if (answers(entry.path() / "socket")) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

Result<Driver> choose_driver(const DriverQuestion& question) {
  if (!question.named.empty()) {
    if (auto machine = machine_called(question.state_directory, question.named)) return *machine;
    return no_machine(question.state_directory, "--sim", question.named);
  }
  if (!question.named_environment.empty()) {
    if (auto machine = machine_called(question.state_directory, question.named_environment))
      return *machine;
    Error error = no_machine(question.state_directory, "ALIQUOT_SIM", question.named_environment);
    error.code = Errc::kUnavailable;  // a variable never means a preset
    return error;
  }
  if (const auto real = question.find_real()) return *real;
  const auto running = running_machines(question.state_directory);
  if (running.size() == 1)
    if (auto machine = machine_called(question.state_directory, running[0])) return *machine;
  if (running.size() <= 1)  // or it has just ended
    return Error{Errc::kUnavailable,
                 "no GPU: no NVIDIA driver answers and no simulated machine runs (to try without a "
                 "GPU: aliquot sim up --node a100x8)"};
  return Error{Errc::kUnavailable, "which machine? no NVIDIA driver answers; simulated machines: " +
                                       joined(running) + " (choose with --sim NAME)"};
}

Result<Driver> driver_called(const std::string& name, const DriverQuestion& question) {
  if (name.starts_with(kSimulated)) {
    const std::string machine = name.substr(kSimulated.size());
    if (auto found = machine_called(question.state_directory, machine)) return *found;
    return no_machine(question.state_directory, "driver", machine);
  }
  if (name == "nvidia")
    if (const auto real = question.find_real()) return *real;
  return Error{Errc::kNotFound, "driver " + name + ": does not answer"};
}

std::string driver_text(const Driver& driver) {
  return format::Json::object()
             .set("name", driver.name)
             .set("machine_directory", driver.machine_directory.string())
             .set("libcuda", driver.libcuda.string())
             .set("libnvidia_ml", driver.libnvidia_ml.string())
             .dump() +
         "\n";
}

Result<Driver> parse_driver(std::string_view text, std::string_view where) {
  const auto json = format::parse_json(text, where);
  if (!json) return json.error();
  std::string name, machine, libcuda, libnvidia_ml;
  format::Fields fields(*json, std::string(where));
  fields.required("name", name)
      .required("machine_directory", machine)
      .required("libcuda", libcuda)
      .required("libnvidia_ml", libnvidia_ml);
  if (const Status done = fields.done(); !done) return done.error();
  return Driver{name, machine, libcuda, libnvidia_ml};
}

std::optional<Driver> find_real_driver() {
  void* nvml = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml == nullptr) return std::nullopt;
  using NvmlCall = int (*)();
  const auto init = reinterpret_cast<NvmlCall>(::dlsym(nvml, "nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<NvmlCall>(::dlsym(nvml, "nvmlShutdown"));
  std::optional<Driver> found;
  std::error_code code;
  const fs::path nvml_path = loaded_path(nvml);
  // A simulated machine's library on LD_LIBRARY_PATH is not the real driver.
  const bool simulated = fs::exists(nvml_path.parent_path().parent_path() / "machine.json", code);
  if (!simulated && init != nullptr && shutdown != nullptr && init() == 0) {
    shutdown();
    if (void* cuda = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
      found = Driver{"nvidia", {}, loaded_path(cuda), nvml_path};
      ::dlclose(cuda);
    }
  }
  ::dlclose(nvml);
  return found;
}

}  // namespace aliquot::inventory
