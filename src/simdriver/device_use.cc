#include "simdriver/device_use.h"

#include <cstring>

#include "driver_abi/nvml_constants.h"
#include "simdriver/channel/client.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {

Result<DeviceUse> device_use(const RunningMachine& machine, unsigned gpu) {
  const std::string what =
      "simulated machine " + machine.name + ", GPU " + std::to_string(gpu) + ": ";
  auto client = Client::connect(machine.directory / "socket");
  if (!client) return Error{Errc::kUnavailable, what + "its server does not answer"};
  const auto answer = client->ask(static_cast<Op>(TelemetryOp::kGpu), TelemetryRequest{gpu});
  if (!answer) return Error{Errc::kUnavailable, what + "its server went away"};
  GpuTelemetry figures{};
  if (answer->result != NVML_SUCCESS || answer->payload.size() < sizeof figures)
    return Error{Errc::kInvalid, what + "no such GPU"};
  std::memcpy(&figures, answer->payload.data(), sizeof figures);
  DeviceUse use{.now = figures.now_ns, .busy = figures.busy_ns, .of = {}};
  for (std::size_t at = sizeof figures; at + sizeof(ProcessTelemetry) <= answer->payload.size();
       at += sizeof(ProcessTelemetry)) {
    ProcessTelemetry process{};
    std::memcpy(&process, answer->payload.data() + at, sizeof process);
    use.of[process.pid] += process.busy_ns;
  }
  return use;
}

}  // namespace aliquot::simdriver
