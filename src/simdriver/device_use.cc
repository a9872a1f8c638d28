#include "simdriver/device_use.h"

#include <cstring>
#include <vector>

#include "driver_abi/nvml_constants.h"
#include "simdriver/channel/client.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

template <typename Head, typename Item, typename Payload>
std::vector<Item> items_behind(const Payload& payload) {
  std::vector<Item> items;
  for (std::size_t at = sizeof(Head); at + sizeof(Item) <= payload.size(); at += sizeof(Item))
    std::memcpy(&items.emplace_back(), payload.data() + at, sizeof(Item));
  return items;
}

}  // namespace

Result<DeviceUse> device_use(const RunningMachine& machine, unsigned gpu) {
  const std::string what =
      "simulated machine " + machine.name + ", GPU " + std::to_string(gpu) + ": ";
  auto client = Client::connect(machine.directory / "socket");
  if (!client) return Error{Errc::kUnavailable, what + "its server does not answer"};
  const TelemetryRequest request{gpu};
  const auto answer = client->ask(static_cast<Op>(TelemetryOp::kGpu), request);
  // Each subject has ops of its own.
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
  const auto switches = client->ask(static_cast<Op>(TelemetryOp::kSwitches), request);
  if (!answer || !switches) return Error{Errc::kUnavailable, what + "its server went away"};
  GpuTelemetry figures{};
  if (answer->result != NVML_SUCCESS || answer->payload.size() < sizeof figures)
    return Error{Errc::kInvalid, what + "no such GPU"};
  std::memcpy(&figures, answer->payload.data(), sizeof figures);
  DeviceUse use{.now = figures.now_ns, .busy = figures.busy_ns, .of = {}, .switching = {}};
  for (const auto& process : items_behind<GpuTelemetry, ProcessTelemetry>(answer->payload))
    use.of[process.pid] += process.busy_ns;
  for (const auto& pair : items_behind<SwitchesReply, SwitchTelemetry>(switches->payload))
    use.switching[{pair.from_pid, pair.to_pid}] += pair.cost_ns;
  return use;
}

}  // namespace aliquot::simdriver
