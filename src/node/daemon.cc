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
#include "node/slots.h"
#include "topology/search.h"

namespace aliquot::node {
namespace {

namespace fs = std::filesystem;

// What nobody tells us of: pods that ended while kubelet did not answer, leases left over.
constexpr Nanoseconds kReconcileEvery = 10 * kSecond;
// A process that uses a GPU past us is named within 10 s: its GPU is asked every 5 s, and two looks
// in a row must find it.
constexpr Nanoseconds kLookEvery = 2 * kSecond;
// What no event tells of: a NIC plugged in, MIG or MPS switched by somebody.
constexpr Nanoseconds kInventoryEvery = 600 * kSecond;

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

inventory::HealthOptions health_options(const Config& config) {
  inventory::HealthOptions options;
  options.interval = config.health_check_interval;
  options.quiet = config.health_quiet;
  return options;
}

Result<FoundMachine> wait_for_machine(const MachineSearch& search, const log::Log& log) {
  for (;;) {
    auto machine = find_machine(search);
    const bool stopped = search.stop != nullptr && *search.stop;
    if (machine || machine.error().code != Errc::kUnavailable || stopped) return machine;
    log.warning(machine.error().message + "; no GPU is known yet, so it is asked until it answers");
  }
}

}  // namespace

// The broker asks for a driver by name; there is one. Until the pool runs (while leases are taken
// over) the GPUs are known but have no room.
class Daemon::Probes final : public broker::ProbeSource {
 public:
  explicit Probes(Daemon& daemon) : daemon_(daemon) {}

  Result<std::unique_ptr<broker::GpuProbe>> open(const std::string& driver) override {
    if (driver == daemon_.driver_.name)
      return std::unique_ptr<broker::GpuProbe>(std::make_unique<Probe>(daemon_));
    return Error{Errc::kNotFound,
                 "open driver " + driver + ": aliquotd serves " + daemon_.driver_.name};
  }

 private:
  class Probe final : public broker::GpuProbe {
   public:
    explicit Probe(Daemon& daemon) : daemon_(daemon) {}
    Result<std::vector<broker::ProbedGpu>> gpus() override {
      if (daemon_.probes_) return daemon_.probes_->measure();
      std::vector<broker::ProbedGpu> rows;
      for (const KnownGpu& gpu : daemon_.machine()->view.gpus) {
        broker::ProbedGpu row;
        row.uuid = gpu.uuid;
        row.name = gpu.name;
        row.total_bytes = gpu.total_bytes;
        row.trouble = "NVML has not been asked yet";
        rows.push_back(std::move(row));
      }
      return rows;
    }
    Result<std::vector<broker::ProbedUse>> use(std::uint32_t gpu, std::uint64_t after_us) override {
      return daemon_.probes_ ? daemon_.probes_->use(gpu, after_us)
                             : std::vector<broker::ProbedUse>();
    }
    bool is_machine_wide() const override { return !daemon_.driver_.simulated(); }

   private:
    Daemon& daemon_;
  };

  Daemon& daemon_;
};

Daemon::Daemon(Options options, FoundMachine machine, const Clock& clock)
    : options_(std::move(options)),
      driver_(machine.driver),
      clock_(clock),
      probe_source_(std::make_unique<Probes>(*this)),
      health_(board_, clock, health_options(options_.config), options_.log.named("health"),
              [this](const HealthChange& change) { report_health(change); }) {
  MachineView view = view_of(machine.inventory, machine.driver);
  machine_ = std::make_shared<const Machine>(Machine{std::move(machine), std::move(view)});
}

std::shared_ptr<const Daemon::Machine> Daemon::machine() const {
  const std::lock_guard lock(mutex_);
  return machine_;
}

Result<std::unique_ptr<Daemon>> Daemon::open(Options options, const Clock& clock) {
  if (const Status made = make_directories(options.config.state_directory, 0755); !made)
    return made.error();
  const MachineSearch search{
      options.installation.probe, options.machines, options.config.cache_directory,
      options.config.sim,         options.give_up,  options.driver_patience_ms};
  auto machine = wait_for_machine(search, options.log);
  if (!machine) return machine.error();
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), *std::move(machine), clock));
  if (const Status started = daemon->start_api_client(); !started) return started.error();
  if (const Status started = daemon->start_broker(); !started) return started.error();
  if (const Status started = daemon->start_kubelet_half(); !started) return started.error();
  if (const Status started = daemon->start_metrics(); !started) return started.error();
  daemon->inventory_wanted_ = daemon->machine_->found.from_cache;
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
  nvidia_watch_.reset();
  watch_.reset();
  if (maintenance_.joinable()) maintenance_.join();
  pods_.reset();
  if (!broker_) return;
  broker_->stop();
  turning.join();
}

MachineSearch Daemon::search() const {
  return {options_.installation.probe, options_.machines, options_.config.cache_directory,
          options_.config.sim,         &ending_,          options_.driver_patience_ms};
}

Status Daemon::start_broker() {
  broker::BrokerOptions broker_options;
  broker_options.state_directory = options_.config.state_directory;
  broker_options.audience = broker::Audience::kEveryone;
  broker_options.hold_guarded_only = true;
  broker_options.inherited_listener = options_.inherited_listener;
  broker_options.log = options_.log.named("broker");
  broker_options.choose = [this](const std::vector<broker::RoomRow>& fitting, std::size_t count) {
    const auto shape = board_.content().shape;
    return shape && count > 1 ? by_topology(*shape, fitting, count)
                              : broker::least_room(fitting, count);
  };
  broker_options.notes = [this] { return notes(); };
  auto broker = broker::Broker::open(std::move(broker_options), *probe_source_, clock_);
  if (!broker) return broker.error();
  broker_ = std::move(*broker);
  const auto known = machine();
  board_.set_gpus(known->view.offered, known->view.shape);
  ProbePool::Options pool{options_.installation.probe, driver_.libnvidia_ml, !driver_.simulated(),
                          options_.config.health_check_interval, options_.log.named("probes")};
  probes_ =
      std::make_unique<ProbePool>(std::move(pool), known->view.gpus, broker_->loop(), &health_);
  usage_ = std::make_unique<UsageWatch>(
      UsageWatch::Surroundings{broker_->book(), broker_->loop(), *probes_},
      options_.config.state_directory / "usage.json", options_.log.named("usage"));
  // For programs of other users, which ask whether the daemon serves the driver they have chosen.
  const Status told = write_file_atomically(options_.config.state_directory / "driver.json",
                                            inventory::driver_text(driver_));
  options_.log.info("serving " + std::to_string(known->view.gpus.size()) + " GPUs of " +
                    driver_.title());
  return told;
}

Status Daemon::start_kubelet_half() {
  const Config& config = options_.config;
  std::error_code code;
  const bool wanted = config.kubelet == UseKubelet::kYes ||
                      (config.kubelet == UseKubelet::kAuto &&
                       fs::is_directory(config.kubelet_directory / "device-plugins", code));
  if (!wanted) return {};
  auto files = lay_out_node_files(config.state_directory, options_.installation.library, driver_);
  if (!files) return files.error();
  files->image_check = options_.installation.image_check;
  resources_ = open_pod_resources(config.kubelet_directory / "pod-resources" / "kubelet.sock");
  start_pods();
  LateBinding::Options binding;
  binding.state_directory = config.state_directory;
  binding.cdi_directory = config.cdi_directory;
  binding.checkpoint = config.kubelet_directory / "device-plugins" / "kubelet_internal_checkpoint";
  binding.resources = {config.resource};
  if (config.nvidia_replicas != 0) binding.resources.push_back(kNvidiaResource);
  binding.nvidia_replicas = std::max(config.nvidia_replicas, 1u);
  binding.bare_memory = {config.default_memory_unit};
  binding.observe = config.observe;
  binding.way = config.injection;
  binding.strategy = config.allocator_strategy;
  binding.files = *files;
  binding.minors = machine()->view.minors;
  binding.add_wishes = [this](const kube::Pod& pod, const BoundContainer& bound,
                              ContainerGift& gift) { return add_wishes(pod, bound, gift); };
  binding.on_refused_change = [this](const kube::Pod& pod, const std::string& why) {
    report(kube::event_target(pod), "ShareRefused", why);
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
  watch_ = std::make_unique<KubeletWatch>(watch, board_, *binding_, clock_);
  if (config.nvidia_replicas == 0) return {};
  watch.endpoint = "aliquot-nvidia.sock";
  watch.resource = kNvidiaResource;
  watch.slots_per_gpu = config.nvidia_replicas;
  watch.first_slot = kNvidiaSlots;
  nvidia_watch_ = std::make_unique<KubeletWatch>(std::move(watch), board_, *binding_, clock_);
  return {};
}

// Runtimes without CDI were told at Allocate already, when nobody knew whose the container is.
Status Daemon::add_wishes(const kube::Pod& pod, const BoundContainer& bound,
                          ContainerGift& gift) const {
  const auto wishes = job_wishes(pod);
  if (!wishes) return wishes.error();
  if (!wishes->hints) return {};
  const auto job = job_gift(*wishes, machine()->found.inventory,
                            inventory::Sysfs(inventory::roots_of(driver_).sys), bound.gpus);
  if (!job) return job.error();
  const auto file = options_.config.state_directory / "pods" / (bound.key + ".nccl.xml");
  if (!job->topology.empty())
    if (const Status written = write_file_atomically(file, job->topology); !written) return written;
  add_job_gift(*job, file, gift);
  return {};
}

// Of the API server where this node has a name in one, else of kubelet itself, which has no Events.
Status Daemon::start_api_client() {
  const Config& config = options_.config;
  if (config.node_name.empty()) {
    api_ = std::make_unique<kube::ApiClient>(kube::anonymous_access(config.kubelet_url), clock_);
    return {};
  }
  const auto access = kube::find_access(config.kubeconfig, kube::process_environment());
  if (!access) return access.error();
  api_ = std::make_unique<kube::ApiClient>(*access, clock_);
  Notices::Options notices;
  notices.node = config.node_name;
  notices.taint_effect = config.unhealthy_taint;
  notices.log = options_.log.named("notices");
  const auto known = machine();
  for (std::size_t i = 0; i < known->view.gpus.size(); ++i)
    notices.gpu_index[known->view.gpus[i].uuid] = static_cast<unsigned>(i);
  notices_ = std::make_unique<Notices>(std::move(notices), *api_);
  return {};
}

void Daemon::start_pods() {
  const Config& config = options_.config;
  const auto changed = [this](const kube::Pods&) {
    const std::lock_guard lock(mutex_);
    pods_changed_ = true;
    woken_.notify_all();
  };
  if (config.node_name.empty()) {
    auto pods = std::make_unique<kube::KubeletPods>(*api_, options_.log.named("pods"));
    pods->on_change(changed);
    pods->start();
    pods_ = std::move(pods);
    return;
  }
  auto pods =
      std::make_unique<kube::ApiPods>(*api_, config.node_name, clock_, options_.log.named("pods"));
  pods->on_change(changed);
  pods->start();
  pods_ = std::move(pods);
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
  const auto known = machine();
  sources.driver_version = known->found.inventory.system.driver_version;
  sources.simulated = driver_.simulated();
  sources.registered = watch_ && watch_->is_ready();
  sources.gpus = known->view.gpus;
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
      sources.now_unix_s - static_cast<double>(known->found.inventory.taken_unix_s);
  return figures_of(sources);
}

void Daemon::reload(const Config& config) {
  options_.config.health_check_interval = config.health_check_interval;
  options_.config.health_quiet = config.health_quiet;
  options_.config.observe = config.observe;
  health_.set_options(health_options(config));
  if (binding_) binding_->observe(config.observe);
  broker_->loop().post(
      [this, interval = config.health_check_interval] { probes_->ask_every(interval); });
  refresh();
}

void Daemon::run() { broker_->run(); }

void Daemon::refresh() {
  const std::lock_guard lock(mutex_);
  inventory_wanted_ = true;
  woken_.notify_all();
}

bool Daemon::is_ready() const {
  return (!watch_ || watch_->is_ready()) && (!nvidia_watch_ || nvidia_watch_->is_ready());
}

void Daemon::maintain() {
  Nanoseconds reconciled_at = 0, looked_at = 0, counted_at = clock_.now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool inventory =
        std::exchange(inventory_wanted_, false) || clock_.now() - counted_at >= kInventoryEvery;
    if (inventory) counted_at = clock_.now();
    const bool changed = std::exchange(pods_changed_, false);
    lock.unlock();
    if (inventory) take_inventory();
    if (binding_ && changed) binding_->apply_changes(pods_->pods());
    if (clock_.now() - looked_at >= kLookEvery) {
      looked_at = clock_.now();
      look_at_tenants();
    }
    if (clock_.now() - reconciled_at >= kReconcileEvery) {
      reconciled_at = clock_.now();
      // It says by itself what it repairs; a kubelet that is away is the watch's to report.
      if (binding_) static_cast<void>(binding_->reconcile());
      if (resources_) compare_allocatable();
    }
    lock.lock();
    woken_.wait_for(lock, std::chrono::nanoseconds(kLookEvery),
                    [&] { return stopping_ || pods_changed_ || inventory_wanted_; });
  }
}

void Daemon::take_inventory() {
  auto taken = take_machine(search());
  if (!taken) {
    options_.log.warning("inventory: " + taken.error().message + "; the last one stays");
    return;
  }
  if (taken->driver.name != driver_.name) {
    options_.log.warning("the driver is " + taken->driver.name + " now; restart to serve it");
    return;
  }
  MachineView view = view_of(taken->inventory, taken->driver);
  board_.set_gpus(view.offered, view.shape);
  static_cast<void>(on_loop<bool>(broker_->loop(), [this, gpus = view.gpus]() -> Result<bool> {
    probes_->set_gpus(gpus);
    return true;
  }));
  auto renewed = std::make_shared<const Machine>(Machine{*std::move(taken), std::move(view)});
  const std::lock_guard lock(mutex_);
  machine_ = std::move(renewed);
}

}  // namespace aliquot::node
