// Figures of aliquotd as kubelet and Prometheus meet it: a simulated machine of eight GPUs, a
// kubelet in this process, 100 containers, some with an attached process. Resident memory, the time
// of a scrape, the processor time of an idle daemon (and of its eight probes, of which most is the
// simulated NVML's: it looks for events every 20 ms, a real one waits in the kernel), the time of
// kubelet's calls. Then many containers more live and end: what the daemon holds more after the
// last than after the first quarter, in which its heap finds its size. At last the time from a
// start to kubelet's holding all GPUs, of a daemon that finds the containers of a killed one and an
// NVML that hangs. Prints one JSON object. Simulated GPUs; the daemon is the real program of the
// build.
//
// usage: node_bench [--lives N]; needs the build's aliquot and aliquotd beside it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "format/json.h"
#include "kube/fake_server.h"
#include "node/testing/fake_kubelet.h"

namespace {

namespace fs = std::filesystem;
using aliquot::format::Json;
using aliquot::node::FakeKubelet;
using Clock = std::chrono::steady_clock;

constexpr unsigned kContainers = 100;
constexpr unsigned kAttached = 16;  // of them with a process (each under an aliquot run)
constexpr unsigned kCalls = 200;    // of Allocate, beyond those
constexpr unsigned kScrapes = 50;
constexpr int kIdleSeconds = 15;
constexpr unsigned kAtOnce = 16;      // of the lives, which come in groups of so many
constexpr unsigned kScrapeEach = 50;  // lives
constexpr const char* kResource = "aliquot.dev/gpu";

// What was started is ended on the way out.
[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(static_cast<double>(values.size() - 1) * part)];
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Killed and waited for when destroyed.
class Program {
 public:
  Program(std::vector<std::string> words, const fs::path& log) {
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions, fd, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                       0644);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0)
      fail("start " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
    wait();
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

double resident_mib(pid_t pid) {
  const std::string text = text_of("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = text.find("VmRSS:");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + 6)) / 1024;
}

// Of the threads that live; to the nanosecond, where ticks are a tenth of what an idle daemon
// takes.
double cpu_s(pid_t pid) {
  double sum = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::istringstream stat(text_of(task.path() / "schedstat"));
    double ns = 0;
    if (stat >> ns) sum += ns / 1e9;
  }
  return sum;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const fs::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : fs::directory_iterator(tasks)) {
    std::istringstream list(text_of(task.path() / "children"));
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

std::string scrape(unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("open a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail("connect to the metrics");
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  static_cast<void>(!::write(fd, request.data(), request.size()));
  std::string text;
  char buffer[64 << 10];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

std::ptrdiff_t entries(const fs::path& directory) {
  return std::distance(fs::directory_iterator(directory), {});
}

// As kubelet's /pods tells them: each asks for a share of one GPU. Any thread.
class Pods {
 public:
  void tell(const std::string& name, const char* phase) {
    const std::lock_guard lock(mutex_);
    phases_[name] = phase;
  }
  void forget(const std::string& name) {
    const std::lock_guard lock(mutex_);
    phases_.erase(name);
  }
  std::string json() const {
    const std::lock_guard lock(mutex_);
    Json items = Json::array();
    for (const auto& [name, phase] : phases_) items.append(pod(name, phase));
    return Json::object().set("kind", "PodList").set("items", std::move(items)).dump();
  }

 private:
  static Json pod(const std::string& name, const char* phase) {
    Json annotations =
        Json::object().set("aliquot.dev/memory", "1GiB").set("aliquot.dev/cores", "5");
    Json limits = Json::object().set(kResource, "1");
    Json container = Json::object()
                         .set("name", "main")
                         .set("resources", Json::object().set("limits", std::move(limits)));
    return Json::object()
        .set("metadata", Json::object()
                             .set("namespace", "default")
                             .set("name", name)
                             .set("uid", "uid-" + name)
                             .set("annotations", std::move(annotations)))
        .set("spec", Json::object().set("containers", Json::array().append(container)))
        .set("status", Json::object().set("phase", phase));
  }

  mutable std::mutex mutex_;
  std::map<std::string, const char*> phases_;
};

class Bench {
 public:
  Bench()
      : bin_(fs::read_symlink("/proc/self/exe").parent_path()),
        server_([this](const aliquot::kube::FakeRequest&) {
          aliquot::kube::FakeReply reply;
          reply.body = pods_.json();
          return reply;
        }) {
    std::string name = "/tmp/aliquot-bench.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) fail("make " + name);
    root_ = name;
    ::setenv("ALIQUOT_STATE_DIR", (root_ / "state").c_str(), 1);
    ::setenv("ALIQUOT_DAEMON_DIR", (root_ / "daemon").c_str(), 1);
    run({"sim", "up", "--node", "a100x8", "--name", "bench"});
    kubelet_ = std::make_unique<FakeKubelet>(root_ / "kubelet");
    start_daemon();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {  // NOLINT(bugprone-exception-escape): what cannot be cleaned up ends the bench
    tenants_.clear();
    daemon_.reset();
    kubelet_->stop();
    run({"sim", "down", "--all"});
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void print(unsigned lives) {
    bind_containers();
    const auto calls = time_calls();
    const auto scrapes = time_scrapes();
    const auto probes = children_of(daemon_->pid());
    double probe_mib = 0;
    for (const pid_t probe : probes) probe_mib = std::max(probe_mib, resident_mib(probe));
    const double resident = resident_mib(daemon_->pid());
    const std::size_t processes = attached();
    const double scrape_kib = static_cast<double>(scrape(port_).size()) / 1024;
    const auto busy = idle_percent(probes);
    const Growth grown = live(lives);
    const double registered_ms = restart_while_nvml_hangs();
    std::printf(
        "{\"bench\": \"node\", \"simulated\": true, \"gpus\": 8, \"containers\": %u,\n"
        " \"attached\": %zu, \"resident_mib\": %.1f, \"probe_resident_mib\": %.1f,\n"
        " \"bind_100_s\": %.2f, \"allocate_p50_ms\": %.3f, \"allocate_p99_ms\": %.3f,\n"
        " \"scrape_p50_ms\": %.2f, \"scrape_p99_ms\": %.2f, \"scrape_kib\": %.0f,\n"
        " \"idle_percent\": %.3f, \"probes_idle_percent\": %.3f,\n"
        " \"lives\": %u, \"lives_s\": %.1f, \"lives_grown_mib\": %.2f,\n"
        " \"lives_grown_descriptors\": %td, \"registered_while_nvml_hangs_ms\": %.0f}\n",
        kContainers, processes, resident, probe_mib, bind_s_, percentile(calls, 0.5),
        percentile(calls, 0.99), percentile(scrapes, 0.5), percentile(scrapes, 0.99), scrape_kib,
        busy.first, busy.second, lives, grown.seconds, grown.mib, grown.descriptors, registered_ms);
  }

 private:
  void start_daemon() {
    daemon_ = std::make_unique<Program>(
        std::vector<std::string>{(bin_ / "aliquotd").string(), "--sim", "bench", "--kubelet", "yes",
                                 "--kubelet-directory", (root_ / "kubelet").string(),
                                 "--kubelet-url", server_.url(), "--state-directory",
                                 (root_ / "daemon").string(), "--cache-directory",
                                 (root_ / "cache").string(), "--cdi-directory",
                                 (root_ / "cdi").string(), "--metrics-address", "127.0.0.1:0"},
        root_ / "aliquotd.log");
  }

  void run(std::vector<std::string> words) {
    words.insert(words.begin(), (bin_ / "aliquot").string());
    if (Program(words, root_ / "aliquot.log").wait() != 0)
      fail("aliquot " + words[1] + ": " + text_of(root_ / "aliquot.log"));
  }

  void within(int seconds, const char* what, const std::function<bool()>& test) const {
    const auto start = Clock::now();
    while (!test()) {
      if (ms_since(start) > seconds * 1000.0)
        fail(std::string(what) + ": not in time: " + text_of(root_ / "aliquotd.log"));
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  void bind_containers() {
    if (!kubelet_->wait_devices(
            kResource, [](const auto& d) { return d.size() == 128; }, std::chrono::seconds(20)))
      fail("not registered: " + text_of(root_ / "aliquotd.log"));
    for (unsigned i = 0; i < kContainers; ++i) pods_.tell("pod-" + std::to_string(i), "Pending");
    const auto start = Clock::now();
    for (unsigned i = 0; i < kContainers; ++i) bind("pod-" + std::to_string(i));
    bind_s_ = ms_since(start) / 1000;
    const std::string mark = "metrics at 127.0.0.1:";
    const std::string log = text_of(root_ / "aliquotd.log");
    const std::size_t at = log.find(mark);
    if (at == std::string::npos) fail("no metrics: " + log);
    port_ = static_cast<unsigned>(std::stoul(log.substr(at + mark.size())));
    for (const auto& lease : fs::directory_iterator(root_ / "daemon/leases")) {
      if (tenants_.size() == kAttached) break;
      tenants_.push_back(std::make_unique<Program>(
          std::vector<std::string>{
              (bin_ / "aliquot").string(), "run", "-q", "--lease", lease.path().filename().string(),
              "--", (bin_ / "aliquot").string(), "burn", "--memory", "16MiB", "--seconds", "600"},
          root_ / "aliquot.log"));
    }
    within(240, "processes attach", [this] { return attached() == kAttached; });
  }

  void bind(const std::string& pod) {
    const auto given = kubelet_->admit(kResource, {"default", pod, "main", 1, false});
    if (!given) fail("admit: " + given.error().message);
    const aliquot::Status bound = kubelet_->pre_start(kResource, given->ids);
    if (!bound) fail("bind: " + bound.error().message);
  }

  // Containers with a process, as the metrics tell.
  std::size_t attached() const {
    std::size_t count = 0;
    std::istringstream text(scrape(port_));
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("aliquot_container_gpu_processes{") && line.ends_with(" 1")) ++count;
    return count;
  }

  // As kubelet sees it: GetPreferredAllocation and Allocate of one container.
  std::vector<double> time_calls() {
    std::vector<double> calls;
    for (unsigned i = 0; i < kCalls; ++i) {
      const auto start = Clock::now();
      const auto given = kubelet_->admit(kResource, {"default", "passing", "main", 1, false});
      calls.push_back(ms_since(start));
      if (!given) fail("admit: " + given.error().message);
      kubelet_->remove("default", "passing");
    }
    return calls;
  }

  std::vector<double> time_scrapes() const {
    std::vector<double> scrapes;
    for (unsigned i = 0; i < kScrapes; ++i) {
      const auto start = Clock::now();
      static_cast<void>(scrape(port_));
      scrapes.push_back(ms_since(start));
    }
    return scrapes;
  }

  // Of one core: the daemon, and all its probes. A container has no `aliquot run` beside it, which
  // asks the daemon for bypasses every 3 s: those here sleep meanwhile.
  std::pair<double, double> idle_percent(const std::vector<pid_t>& probes) const {
    const auto of_probes = [&] {
      double sum = 0;
      for (const pid_t probe : probes) sum += cpu_s(probe);
      return sum;
    };
    for (const auto& tenant : tenants_) ::kill(tenant->pid(), SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const double before = cpu_s(daemon_->pid());
    const double probes_before = of_probes();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(kIdleSeconds));
    const double wall = ms_since(start) / 1000;
    const std::pair<double, double> percent{(cpu_s(daemon_->pid()) - before) / wall * 100,
                                            (of_probes() - probes_before) / wall * 100};
    for (const auto& tenant : tenants_) ::kill(tenant->pid(), SIGCONT);
    return percent;
  }

  struct Growth {
    double seconds = 0, mib = 0;
    std::ptrdiff_t descriptors = 0;
  };

  Growth live(unsigned lives) {
    tenants_.clear();  // they would take the processors from who is measured
    const auto start = Clock::now();
    live_through(0, lives / 4);
    const fs::path descriptors = "/proc/" + std::to_string(daemon_->pid()) + "/fd";
    const double early_mib = resident_mib(daemon_->pid());
    const std::ptrdiff_t early_descriptors = entries(descriptors);
    live_through(lives / 4, lives);
    return {ms_since(start) / 1000, resident_mib(daemon_->pid()) - early_mib,
            entries(descriptors) - early_descriptors};
  }

  // When it returns all of them have ended and the daemon has let go of them.
  void live_through(unsigned begin, unsigned end) {
    const auto name = [](unsigned i) { return "life-" + std::to_string(i); };
    const auto over = [&](unsigned i) {
      kubelet_->remove("default", name(i));
      pods_.tell(name(i), "Succeeded");
      // A pod that has ended is told of for a while: long enough for the daemon to ask meanwhile.
      if (i >= begin + 2 * kAtOnce) pods_.forget(name(i - 2 * kAtOnce));
    };
    for (unsigned i = begin; i < end; ++i) {
      if ((i - begin) % kAtOnce == 0)
        for (unsigned j = i; j < std::min(i + kAtOnce, end); ++j) pods_.tell(name(j), "Pending");
      bind(name(i));
      if (i >= begin + kAtOnce) over(i - kAtOnce);
      if (i % kScrapeEach == 0) static_cast<void>(scrape(port_));
    }
    for (unsigned i = std::max(begin + kAtOnce, end) - kAtOnce; i < end; ++i) over(i);
    within(30, "what ended containers had is gone", [this] {
      return entries(root_ / "daemon/leases") == kContainers &&
             entries(root_ / "daemon/pods") == kContainers && entries(root_ / "cdi") == kContainers;
    });
  }

  double restart_while_nvml_hangs() {
    ::kill(daemon_->pid(), SIGKILL);
    daemon_->wait();
    if (!kubelet_->wait_devices(kResource, [](const auto& d) { return d.empty(); }))
      fail("kubelet holds the stream of a daemon that was killed");
    for (unsigned gpu = 0; gpu < 8; ++gpu)
      run({"sim", "fault", "bench", "--gpu", std::to_string(gpu), "--nvml-hang", "3600000"});
    const auto start = Clock::now();
    start_daemon();
    if (!kubelet_->wait_devices(kResource, [](const auto& d) { return d.size() == 128; }))
      fail("not registered while NVML hangs: " + text_of(root_ / "aliquotd.log"));
    return ms_since(start);
  }

  fs::path bin_, root_;
  Pods pods_;
  aliquot::kube::FakeServer server_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<Program> daemon_;
  std::vector<std::unique_ptr<Program>> tenants_;
  unsigned port_ = 0;
  double bind_s_ = 0;
};

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws for an option that we named twice, say
int main(int argc, char** argv) {
  CLI::App app("Figures of aliquotd as kubelet and Prometheus meet it");
  unsigned lives = 10'000;
  app.add_option("--lives", lives, "Containers that come and go");
  CLI11_PARSE(app, argc, argv);
  try {
    Bench().print(lives);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "node_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
