#include "node/daemon.h"

#include <algorithm>
#include <ctime>

#include "common/files.h"
#include "kube/access.h"
#include "kube/api_pods.h"
#include "kube/kubelet_pods.h"
#include "kube/writes.h"
#include "node/exposition.h"
#include "node/job_gift.h"
#include "node/metrics.h"
#include "node/on_loop.h"
#include "topology/search.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

// What nobody tells us of: pods that ended while kubelet did not answer, leases left over.
constexpr Nanoseconds kReconcileEvery = 10 * kSecond;

std::vector<std::size_t> by_topology(const topology::Shape& shape,
                                     const std::vector<broker::RoomRow>& fitting,
                                     std::size_t count) {
  topology::Request request;
  request.count = static_cast<unsigned>(count);
  for (const broker::RoomRow& row : fitting) request.free.insert(row.index);
  const auto best = topology::best_set(shape, request);
  if (!best) return broker::least_room(fitting, count);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if (best->contains(fitting[i].index)) chosen.push_back(i);
  return chosen;
}

}  // namespace

// The broker asks for a driver by name; there is one. Until the pool runs (while leases are taken
// over) the GPUs are known but have no room.
class Daemon::Probes final : public broker::ProbeSource {
 public:
  explicit Probes(Daemon& daemon) : daemon_(daemon) {}

  Result<std::unique_ptr<broker::GpuProbe>> open(const std::string& driver) override {
    if (driver == daemon_.machine_.driver.name)
      return std::unique_ptr<broker::GpuProbe>(std::make_unique<Probe>(daemon_));
    return Error{Errc::kNotFound,
                 "open driver " + driver + ": aliquotd serves " + daemon_.machine_.driver.name};
  }

 private:
  class Probe final : public broker::GpuProbe {
   public:
    explicit Probe(Daemon& daemon) : daemon_(daemon) {}
    Result<std::vector<broker::ProbedGpu>> gpus() override {
      if (daemon_.probes_) return daemon_.probes_->measure();
      std::vector<broker::ProbedGpu> rows;
      for (const KnownGpu& gpu : daemon_.view_.gpus) {
        broker::ProbedGpu row;
        row.uuid = gpu.uuid;
        row.name = gpu.name;
        row.total_bytes = gpu.total_bytes;
        rows.push_back(std::move(row));
      }
      return rows;
    }
    bool is_machine_wide() const override { return !daemon_.machine_.driver.simulated(); }

   private:
    Daemon& daemon_;
  };

  Daemon& daemon_;
};

Daemon::Daemon(Options options, FoundMachine machine, const Clock& clock)
    : options_(std::move(options)),
      machine_(std::move(machine)),
      view_(view_of(machine_.inventory, machine_.driver)),
      clock_(clock),
      probe_source_(std::make_unique<Probes>(*this)),
      health_(board_, clock, options_.config.health_check_interval, options_.log.named("health")) {}

Result<std::unique_ptr<Daemon>> Daemon::open(Options options, const Clock& clock) {
  if (const Status made = make_directories(options.config.state_directory, 0755); !made)
    return made.error();
  const MachineSearch search{options.installation.probe, options.machines,
                             options.config.cache_directory, options.config.sim, nullptr};
  auto machine = find_machine(search);
  if (!machine) return machine.error();
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), *std::move(machine), clock));
  if (const Status started = daemon->start_broker(); !started) return started.error();
  if (const Status started = daemon->start_kubelet_half(); !started) return started.error();
  if (const Status started = daemon->start_metrics(); !started) return started.error();
  daemon->inventory_wanted_ = daemon->machine_.from_cache;
  daemon->maintenance_ = std::thread([self = daemon.get()] { self->maintain(); });
  return daemon;
}

Daemon::~Daemon() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = ending_ = true;
  }
  woken_.notify_all();
  // Others may wait for the loop's answer: it turns until they have ended.
  std::thread turning;
  if (broker_) turning = std::thread([this] { broker_->run(); });
  scrapes_.reset();
  watch_.reset();
  if (maintenance_.joinable()) maintenance_.join();
  pods_.reset();
  if (!broker_) return;
  broker_->stop();
  turning.join();
}

MachineSearch Daemon::search() const {
  return {options_.installation.probe, options_.machines, options_.config.cache_directory,
          options_.config.sim, &ending_};
}

Status Daemon::start_broker() {
  broker::BrokerOptions broker_options;
  broker_options.state_directory = options_.config.state_directory;
  broker_options.audience = broker::Audience::kEveryone;
  broker_options.inherited_listener = options_.inherited_listener;
  broker_options.log = options_.log.named("broker");
  broker_options.choose = [this](const std::vector<broker::RoomRow>& fitting, std::size_t count) {
    const auto shape = board_.content().shape;
    return shape && count > 1 ? by_topology(*shape, fitting, count)
                              : broker::least_room(fitting, count);
  };
  auto broker = broker::Broker::open(std::move(broker_options), *probe_source_, clock_);
  if (!broker) return broker.error();
  broker_ = std::move(*broker);
  board_.set_gpus(view_.offered, view_.shape);
  ProbePool::Options pool{options_.installation.probe, machine_.driver.libnvidia_ml,
                          !machine_.driver.simulated(), options_.log.named("probes")};
  probes_ = std::make_unique<ProbePool>(std::move(pool), view_.gpus, broker_->loop(), &health_);
  usage_ = std::make_unique<UsageWatch>(
      UsageWatch::Surroundings{broker_->book(), broker_->loop(), *probes_},
      options_.config.state_directory / "usage.json", options_.log.named("usage"));
  // For programs of other users, which ask whether the daemon serves the driver they have chosen.
  const Status told = write_file_atomically(options_.config.state_directory / "driver.json",
                                            inventory::driver_text(machine_.driver));
  options_.log.info("serving " + std::to_string(view_.gpus.size()) + " GPUs of " +
                    machine_.driver.title());
  return told;
}

Status Daemon::start_kubelet_half() {
  const Config& config = options_.config;
  std::error_code code;
  const bool wanted = config.kubelet == UseKubelet::kYes ||
                      (config.kubelet == UseKubelet::kAuto &&
                       fs::is_directory(config.kubelet_directory / "device-plugins", code));
  if (!wanted) return {};
  const auto files =
      lay_out_node_files(config.state_directory, options_.installation.library, machine_.driver);
  if (!files) return files.error();
  resources_ = open_pod_resources(config.kubelet_directory / "pod-resources" / "kubelet.sock");
  if (const Status started = start_pods(); !started) return started;
  LateBinding::Options binding;
  binding.state_directory = config.state_directory;
  binding.cdi_directory = config.cdi_directory;
  binding.checkpoint = config.kubelet_directory / "device-plugins" / "kubelet_internal_checkpoint";
  binding.resource = config.resource;
  binding.way = config.injection;
  binding.strategy = config.allocator_strategy;
  binding.files = *files;
  binding.minors = view_.minors;
  binding.add_wishes = [this](const kube::Pod& pod, const BoundContainer& bound,
                              ContainerGift& gift) { return add_wishes(pod, bound, gift); };
  binding.on_refused_change = [this](const kube::Pod& pod, const std::string& why) {
    report_refused(pod, why);
  };
  binding.log = options_.log.named("binding");
  binding_ = std::make_unique<LateBinding>(
      std::move(binding), LateBinding::Surroundings{broker_->book(), broker_->loop(), *resources_,
                                                    *pods_, board_, clock_});
  if (const Status adopted = binding_->adopt(); !adopted) return adopted;
  KubeletWatch::Options watch;
  watch.directory = config.kubelet_directory / "device-plugins";
  watch.resource = config.resource;
  watch.slots_per_gpu = config.slots_per_gpu;
  watch.log = options_.log.named("kubelet");
  watch_ = std::make_unique<KubeletWatch>(std::move(watch), board_, *binding_, clock_);
  return {};
}

// Runtimes without CDI were told at Allocate already, when nobody knew whose the container is.
Status Daemon::add_wishes(const kube::Pod& pod, const BoundContainer& bound,
                          ContainerGift& gift) const {
  const auto wishes = job_wishes(pod);
  if (!wishes) return wishes.error();
  if (!wishes->hints) return {};
  const auto job = job_gift(*wishes, machine_.inventory,
                            inventory::Sysfs(inventory::roots_of(machine_.driver).sys), bound.gpus);
  if (!job) return job.error();
  const auto file = options_.config.state_directory / "pods" / (bound.key + ".nccl.xml");
  if (!job->topology.empty())
    if (const Status written = write_file_atomically(file, job->topology); !written) return written;
  add_job_gift(*job, file, gift);
  return {};
}

// From the API server where this node has a name in one, else from kubelet itself.
Status Daemon::start_pods() {
  const Config& config = options_.config;
  const auto changed = [this](const kube::Pods&) {
    const std::lock_guard lock(mutex_);
    pods_changed_ = true;
    woken_.notify_all();
  };
  if (config.node_name.empty()) {
    api_ = std::make_unique<kube::ApiClient>(kube::anonymous_access(config.kubelet_url), clock_);
    auto pods = std::make_unique<kube::KubeletPods>(*api_, options_.log.named("pods"));
    pods->on_change(changed);
    pods->start();
    pods_ = std::move(pods);
    return {};
  }
  const auto access = kube::find_access(config.kubeconfig, kube::process_environment());
  if (!access) return access.error();
  api_ = std::make_unique<kube::ApiClient>(*access, clock_);
  auto pods =
      std::make_unique<kube::ApiPods>(*api_, config.node_name, clock_, options_.log.named("pods"));
  pods->on_change(changed);
  pods->start();
  pods_ = std::move(pods);
  return {};
}

Status Daemon::start_metrics() {
  if (options_.config.metrics_address.empty()) return {};
  const MetricSets sets{options_.config.compat.find("dcgm") != std::string::npos,
                        options_.config.compat.find("hami") != std::string::npos};
  if (!options_.config.dcgm_url.empty())
    dcgm_ = std::make_unique<DcgmSource>(options_.config.dcgm_url, options_.log.named("dcgm"));
  auto served = ScrapeServer::serve(
      options_.config.metrics_address,
      [this, sets](std::string_view path, std::string_view accept) -> ScrapeAnswer {
        if (path == "/healthz")
          return is_ready() ? ScrapeAnswer{200, "text/plain", "ready\n"}
                            : ScrapeAnswer{503, "text/plain", "kubelet does not hold our stream\n"};
        if (path != "/metrics") return {404, "text/plain", "there are /metrics and /healthz\n"};
        const auto now = figures();
        if (!now) return {503, "text/plain", now.error().message + "\n"};
        const TextFormat format = format_asked(accept);
        auto families = node_metrics(*now, sets);
        if (dcgm_) dcgm_->add_to(*now, families);
        return {200, std::string(content_type(format)), expose(families, format)};
      });
  if (!served) {
    // Somebody else's port is no reason to share no GPUs.
    options_.log.warning(served.error().message + "; metrics are not served");
    return {};
  }
  scrapes_ = std::move(*served);
  const std::string& address = options_.config.metrics_address;
  options_.log.info("metrics at " + address.substr(0, address.rfind(':') + 1) +
                    std::to_string(scrapes_->port()));
  return {};
}

Result<NodeFigures> Daemon::figures() {
  FiguresSources sources;
  sources.node = options_.config.node_name;
  sources.driver_version = machine_.inventory.system.driver_version;
  sources.simulated = machine_.driver.simulated();
  sources.registered = watch_ && watch_->is_ready();
  sources.gpus = view_.gpus;
  sources.readings = probes_->latest();
  sources.health = health_.states();
  auto used = on_loop<UsageWatch::Look>(broker_->loop(), [this] { return Result(usage_->look()); });
  if (!used) return used.error();
  usage_->keep(*used);
  sources.leases = std::move(used->leases);
  sources.usage = std::move(used->totals);
  if (binding_) {
    sources.containers = binding_->bound();
    sources.counters = binding_->counters();
  }
  sources.unleased = unleased();
  sources.now = clock_.now();
  sources.now_unix_s = static_cast<double>(std::time(nullptr));
  sources.inventory_age_s =
      sources.now_unix_s - static_cast<double>(machine_.inventory.taken_unix_s);
  return figures_of(sources);
}

void Daemon::report_refused(const kube::Pod& pod, const std::string& why) {
  if (options_.config.node_name.empty()) return;  // there is no API server to tell
  kube::Event event;
  event.target = kube::event_target(pod);
  event.reason = "ShareRefused";
  event.message = why;
  const Status posted = kube::post_event(*api_, event, std::time(nullptr));
  if (!posted) options_.log.warning(posted.error().message);
}

void Daemon::run() { broker_->run(); }

void Daemon::refresh() {
  const std::lock_guard lock(mutex_);
  inventory_wanted_ = true;
  woken_.notify_all();
}

bool Daemon::is_ready() const { return !watch_ || watch_->is_ready(); }

void Daemon::maintain() {
  Nanoseconds reconciled_at = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool inventory = std::exchange(inventory_wanted_, false);
    const bool changed = std::exchange(pods_changed_, false);
    lock.unlock();
    if (inventory) take_inventory();
    if (binding_ && changed) binding_->apply_changes(pods_->pods());
    if (clock_.now() - reconciled_at >= kReconcileEvery) {
      reconciled_at = clock_.now();
      look_for_unleased();
      // It says by itself what it repairs; a kubelet that is away is the watch's to report.
      if (binding_) static_cast<void>(binding_->reconcile());
    }
    lock.lock();
    woken_.wait_for(lock, std::chrono::nanoseconds(kReconcileEvery),
                    [&] { return stopping_ || pods_changed_ || inventory_wanted_; });
  }
}

std::vector<UnleasedProcess> Daemon::unleased() const {
  const std::lock_guard lock(mutex_);
  return unleased_;
}

// Said once of each; what is to be done about them is the administrator's.
void Daemon::look_for_unleased() {
  const auto leases = on_loop<std::vector<broker::LeaseRow>>(
      broker_->loop(), [this] { return Result(broker_->book().rows_after("", 1000)); });
  if (!leases) return;
  auto found = unleased_processes(probes_->latest(), *leases, [](std::int32_t pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/cgroup", 64 << 10);
    return text ? *text : std::string();
  });
  for (const UnleasedProcess& process : found) {
    const auto before = unleased();
    if (std::ranges::find(before, process.pid, &UnleasedProcess::pid) != before.end()) continue;
    std::string whose;
    if (pods_ && !process.pod_uid.empty())
      for (const kube::PodRef& pod : pods_->pods())
        if (pod->cgroup_uid() == process.pod_uid) whose = " of pod " + pod->full_name();
    options_.log.warning("process " + std::to_string(process.pid) + whose + " uses GPU " +
                         process.uuid + " without a lease: no limit holds it");
  }
  const std::lock_guard lock(mutex_);
  unleased_ = std::move(found);
}

void Daemon::take_inventory() {
  auto taken = take_machine(search());
  if (!taken) {
    options_.log.warning("inventory: " + taken.error().message + "; the last one stays");
    return;
  }
  if (taken->driver.name != machine_.driver.name) {
    options_.log.warning("the driver is " + taken->driver.name + " now; restart to serve it");
    return;
  }
  MachineView view = view_of(taken->inventory, taken->driver);
  board_.set_gpus(view.offered, view.shape);
  static_cast<void>(on_loop<bool>(broker_->loop(), [this, gpus = view.gpus]() -> Result<bool> {
    probes_->set_gpus(gpus);
    return true;
  }));
}

}  // namespace aliquot::node
