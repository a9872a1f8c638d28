#include "cli/run_command.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <ostream>
#include <set>

#include "cli/compute_options.h"
#include "cli/numa_binding.h"
#include "cli/share_options.h"
#include "cli/surroundings.h"
#include "cli/tenant.h"
#include "common/state_directory.h"
#include "inventory/document.h"
#include "inventory/driver_look.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string sim, name, lease, numa = "off";
  ShareOptions share;
  broker::ComputeChange compute;
  bool wait = false;
  bool cooperative = false;
  bool quiet = false;
};

struct Run {
  RunOptions options;
  std::vector<std::string> command;
  std::ostream& err;

  void say(const std::string& line) const {
    if (!options.quiet) err << "aliquot run: " << line << '\n';
  }
};

Result<broker::LeaseGrant> obtain_lease(const Run& run, const inventory::Driver& driver,
                                        bool contained, broker::Client& broker) {
  if (!run.options.lease.empty()) return broker.join_lease(run.options.lease);
  auto shares = shares_of(run.options.share);
  if (!shares) return shares.error();
  broker::LeaseRequest request;
  request.driver = driver.name;
  request.name = run.options.name;
  request.shares = *std::move(shares);
  const broker::ComputeChange& compute = run.options.compute;
  request.weight = compute.weight.value_or(1);
  request.share_class = compute.share_class.value_or(wire::ShareClass::kOffline);
  request.priority = compute.priority.value_or(0);
  request.capped = compute.capped.value_or(false);
  // Where the interposer finds the driver behind it: the tenant's own view.
  request.real_libcuda = contained ? kTenantLibcuda : driver.libcuda.string();
  request.real_libnvidia_ml = contained ? kTenantLibnvidiaMl : driver.libnvidia_ml.string();
  auto lease = broker.create_lease(request);
  if (lease || !run.options.wait || lease.error().code != Errc::kExhausted) return lease;
  const std::string& missing = lease.error().message;
  run.say("waiting until there is room: " + missing.substr(0, missing.find("; ask for less")));
  request.wait = true;
  return broker.create_lease(request);
}

TenantView view_of(const inventory::Driver& driver, const broker::LeaseGrant& lease,
                   const fs::path& libraries) {
  TenantView view;
  view.lease = lease.directory;
  view.library = libraries / "libaliquot.so";
  view.state_directory = state_directory();
  view.loader_cache = state_directory() / "ld.so.cache";
  view.libcuda = driver.libcuda;
  view.libnvidia_ml = driver.libnvidia_ml;
  view.simulated_machine = driver.machine_directory;
  return view;
}

// Says once of each process of ours that uses a GPU without limits.
void report_bypasses(const Run& run, const std::string& lease, broker::Client& broker,
                     std::set<std::int32_t>& known) {
  const auto rows = broker.bypasses();
  if (!rows) return;
  for (const broker::BypassRow& row : *rows)
    if (row.lease == lease && known.insert(row.pid).second)
      run.err << "aliquot run: process " << row.pid << " uses GPU " << row.index
              << " without having attached to lease " << lease << ": no limit holds it\n";
}

// A simulated machine that lives as long as one command.
class PassingMachine {
 public:
  PassingMachine() = default;
  PassingMachine(const PassingMachine&) = delete;
  PassingMachine& operator=(const PassingMachine&) = delete;
  ~PassingMachine() {
    if (!name_.empty()) (void)simdriver::stop_machine(name_);  // its server may have ended already
  }

  // Errc::kNotFound: there is no such preset.
  Status start(const std::string& preset) {
    const auto simulator = simdriver::simulator_directory();
    if (!simulator) return simulator.error();
    const std::string name = "run-" + std::to_string(::getpid());
    const auto spec = simdriver::make_machine({preset, name, ""}, *simulator);
    if (!spec) return spec.error();
    const auto machine = simdriver::start_machine(*spec, *simulator);
    if (!machine) return machine.error();
    name_ = name;
    return {};
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

Result<inventory::Driver> driver_for(const RunOptions& options, PassingMachine& passing) {
  if (!options.lease.empty()) {
    auto broker = broker_of_lease(options.lease);
    if (!broker) return broker.error();
    const auto lease = broker->get_lease(options.lease);
    if (!lease) return lease.error();
    if (const auto served = daemon_driver(); served && served->name == lease->driver)
      return *served;
    return inventory::driver_called(lease->driver, driver_question(""));
  }
  auto driver = inventory::choose_driver(driver_question(options.sim));
  if (driver) return driver;
  // A machine that the daemon serves is everybody's.
  if (const auto served = daemon_driver();
      served && (options.sim.empty() || served->name == "sim:" + options.sim))
    return *served;
  if (driver.error().code != Errc::kNotFound) return driver;
  if (const Status started = passing.start(options.sim); !started)
    return started.error().code == Errc::kNotFound ? driver.error() : started.error();
  return inventory::choose_driver(driver_question(passing.name()));
}

// Whether the command can be contained; says so when it cannot.
bool containment(const Run& run) {
  if (run.options.cooperative) {
    run.say("cooperative limits only: asked for");
    return false;
  }
  const Status possible = tenant_namespace_possible();
  if (!possible) run.say("cooperative limits only: " + possible.error().message);
  return possible.has_value();
}

// A daemon that has ended is started again by who started it, not by us.
Result<broker::Client> next_broker(const inventory::Driver& driver, bool daemon) {
  return daemon ? broker::Client::connect(daemon_directory()) : broker_for(driver);
}

struct Watched {
  const broker::LeaseGrant& lease;
  const inventory::Driver& driver;
  pid_t tenant;
};

int watch(const Run& run, const Watched& watched, broker::Client& broker) {
  std::set<std::int32_t> bypasses;
  const bool daemon = !daemon_directory().empty() &&
                      watched.lease.directory.starts_with(daemon_directory().string() + "/leases/");
  TenantWatch watch;
  watch.broker_pidfd = broker.broker_pidfd();
  watch.broker_ended = [&] {
    auto next = next_broker(watched.driver, daemon);
    if (!next) {
      run.say(next.error().message);
      return -1;
    }
    broker = *std::move(next);
    return broker.broker_pidfd();
  };
  // A process past us is to be named within 2 s, of which the broker's measurement may take one.
  watch.look_around = [&] { report_bypasses(run, watched.lease.name, broker, bypasses); };
  return watch_tenant(watched.tenant, watch);
}

// As shells say it: 127 where there is no such command, 126 where it cannot be executed.
std::optional<int> exec_status(const Error& error) {
  if (error.code == Errc::kNotFound) return 127;
  if (error.code == Errc::kDenied) return 126;
  return std::nullopt;
}

void say_lease(const Run& run, const broker::LeaseGrant& lease, const inventory::Driver& driver) {
  std::string gpus;
  for (const broker::GrantedGpu& gpu : lease.gpus) {
    gpus += (gpus.empty() ? "GPU " : ", GPU ") + std::to_string(gpu.index) + ": " +
            model::memory_text(gpu.limit_bytes);
    if (gpu.cores != 0) gpus += " and " + model::cores_text(gpu.cores);
  }
  run.say("lease " + lease.name + " on " + driver.title() + ", " + gpus);
  for (const broker::GrantedGpu& gpu : lease.gpus)
    if (gpu.cores != 0 && gpu.policy != wire::Policy::kBurst && gpu.policy != wire::Policy::kFixed)
      run.say("cores do not count on GPU " + std::to_string(gpu.index) + ": its policy is " +
              std::string(policy_text(gpu.policy)) + " (aliquot gpu set " +
              std::to_string(gpu.index) + " --policy burst)");
}

// Where the command is to run; nothing: anywhere.
Result<std::optional<NumaBinding>> binding_for(const Run& run, const inventory::Driver& driver,
                                               const broker::LeaseGrant& lease) {
  if (run.options.numa != "near") return std::optional<NumaBinding>();
  const auto answer =
      inventory::look_at_driver([&driver] { return inventory::open_nvml(driver.libnvidia_ml); });
  if (!answer) return answer.error();
  std::vector<inventory::NvmlGpu> gpus;
  for (const broker::GrantedGpu& granted : lease.gpus)
    for (const inventory::GpuAnswer& one : answer->gpus)
      if (one.gpu.uuid == granted.uuid) gpus.push_back(one.gpu);
  if (gpus.size() != lease.gpus.size())
    return Error{Errc::kUnavailable,
                 "bind near the share's GPUs: the driver does not say where one of them is; run "
                 "with --numa off"};
  auto binding = near_gpus(gpus, inventory::Sysfs(inventory::roots_of(driver).sys));
  if (!binding) return binding.error();
  return std::optional(*std::move(binding));
}

Result<int> run_in_lease(const Run& run) {
  if (inside_lease())
    return Error{Errc::kInvalid, "this is inside a lease already; run it outside"};
  const auto libraries = library_directory();
  if (!libraries) return libraries.error();
  PassingMachine passing;
  const auto driver = driver_for(run.options, passing);
  if (!driver) return driver.error();
  auto broker =
      run.options.lease.empty() ? broker_for(*driver) : broker_of_lease(run.options.lease);
  if (!broker) return broker.error();
  const bool contained = containment(run);
  const auto lease = obtain_lease(run, *driver, contained, *broker);
  if (!lease) return lease.error();
  say_lease(run, *lease, *driver);
  const auto numa = binding_for(run, *driver, *lease);
  if (!numa) return numa.error();
  const auto tenant = launch_tenant(
      {run.command, view_of(*driver, *lease, *libraries), contained, *libraries / "names", *numa});
  if (!tenant) {
    const auto status = exec_status(tenant.error());
    if (!status) return tenant.error();
    run.err << "aliquot run: " << tenant.error().message << '\n';
    return *status;
  }
  return watch(run, {*lease, *driver, *tenant}, *broker);
}

// How the command is run, whatever its share is.
void add_manner(CLI::App& run, RunOptions& options) {
  run.add_option("--numa", options.numa,
                 "near: CPUs and memory of the NUMA nodes of the share's GPUs alone")
      ->type_name("near|off")
      ->check(CLI::IsMember({"near", "off"}))
      ->capture_default_str();
  run.add_flag("--wait", options.wait, "Wait for room instead of being refused");
  run.add_flag("--cooperative", options.cooperative, "Preload only, no mount namespace");
  run.add_flag("-q,--quiet", options.quiet, "Do not say which driver and lease it is");
}

}  // namespace

void add_run_command(CLI::App& app, Invocation& invocation) {
  CLI::App* run = app.add_subcommand("run", "Run a command in a share of one or more GPUs");
  auto options = std::make_shared<RunOptions>();
  const CLI::Validator given([](std::string& text) { return text.empty() ? "is empty" : ""; }, "");
  auto* sim = run->add_option("--sim", options->sim,
                              "Running simulated machine, or a preset to start for this")
                  ->type_name("NAME|PRESET")
                  ->check(given);
  auto* gpu = run->add_option("--gpu", options->share.gpu,
                              "GPUs by index or UUID, each with its own memory and cores")
                  ->type_name("GPU[:MEMORY][/CORES],...")
                  ->check(given);
  auto* gpus = run->add_option("--gpus", options->share.gpus, "The best N GPUs")
                   ->type_name("N")
                   ->check(CLI::Range(1u, wire::kMaxGpus));
  auto* memory =
      run->add_option("--memory", options->share.memory, "Memory limit on each GPU (4GiB, 25%)")
          ->type_name("QTY")
          ->check(given);
  const auto compute = add_compute_options(*run);
  auto* name = run->add_option("--name", options->name, "Name of the new lease")->check(given);
  run->add_option("--lease", options->lease, "Join this lease instead of making one")
      ->check(given)
      ->excludes(name)
      ->excludes(sim)
      ->excludes(gpu)
      ->excludes(gpus)
      ->excludes(memory)
      ->excludes("--cores")
      ->excludes("--weight")
      ->excludes("--class")
      ->excludes("--priority")
      ->excludes("--cap");
  add_manner(*run, *options);
  run->prefix_command();
  run->footer("The command follows the options, best after --.");
  run->callback([options, compute, run, &invocation] {
    const std::vector<std::string> command = run->remaining();
    // Words that cannot be meant are usage errors, as the parser's own.
    const auto refuse = [&](const Error& error) {
      fail(invocation, "run", error);
      if (error.code == Errc::kInvalid) invocation.status = kUsageError;
    };
    if (command.empty())
      return refuse({Errc::kInvalid, "no command; write: aliquot run -- COMMAND"});
    // The first word that is no option of ours begins the command: a mistyped option would.
    if (command.front().starts_with('-'))
      return refuse(
          {Errc::kInvalid, "there is no option " + command.front() + " (see run --help)"});
    const auto change = change_of(*compute);
    if (!change) return refuse(change.error());
    options->compute = *change;
    options->share.cores = change->cores.value_or(0);
    const auto status = run_in_lease({*options, command, invocation.err});
    if (!status) return refuse(status.error());
    invocation.status = *status;
  });
}

}  // namespace aliquot::cli
