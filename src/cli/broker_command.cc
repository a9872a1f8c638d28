#include "cli/broker_command.h"

#include <csignal>
#include <memory>
#include <ostream>

#include "broker/bounded_probe.h"
#include "broker/broker.h"
#include "cli/gpu_probe.h"
#include "cli/surroundings.h"
#include "common/state_directory.h"

namespace aliquot::cli {
namespace {

// Long enough that a script of `aliquot run`s meets the same broker, short enough to leave nothing
// behind.
constexpr Nanoseconds kIdleExit = 30 * kSecond;

// The loop that SIGTERM ends; set while it runs.
broker::Broker* running = nullptr;
void end_loop(int /*signal*/) { running->stop(); }

Status serve() {
  MonotonicClock clock;
  const auto drivers = std::make_shared<DriverProbeSource>();
  broker::BoundedProbes probes(drivers);
  broker::BrokerOptions options;
  options.state_directory = state_directory();
  options.idle_exit = kIdleExit;
  options.log = log::Log::to_stderr("broker");
  options.choose = [&](const std::vector<broker::RoomRow>& fitting, std::size_t count) {
    return drivers->choose(fitting, count);
  };
  auto broker = broker::Broker::open(std::move(options), probes, clock);
  if (!broker) return broker.error();
  running = broker->get();
  std::signal(SIGTERM, &end_loop);
  (*broker)->run();
  std::signal(SIGTERM, SIG_DFL);
  return {};
}

Status stop() {
  auto broker = running_broker();
  if (!broker) return broker.error();
  return broker->shutdown();
}

}  // namespace

void add_broker_command(CLI::App& app, Invocation& invocation) {
  CLI::App* broker = app.add_subcommand("broker", "Keep this user's leases (started by run)");
  auto end = std::make_shared<bool>(false);
  broker->add_flag("--stop", *end, "End the running one; leases stay for the next");
  broker->callback([end, &invocation] {
    if (const Status done = *end ? stop() : serve(); !done)
      fail(invocation, "broker", done.error());
  });
}

}  // namespace aliquot::cli
