#include "simdriver/faults.h"

#include "driver_abi/nvml_constants.h"
#include "simdriver/channel/client.h"

namespace aliquot::simdriver {

Status inject_fault(const RunningMachine& machine, const FaultRequest& fault) {
  const std::string what =
      "simulated machine " + machine.name + ", GPU " + std::to_string(fault.gpu) + ": ";
  auto client = Client::connect(machine.directory / "socket");
  if (!client) return Error{Errc::kUnavailable, what + "its server does not answer"};
  const auto answer = client->ask(static_cast<Op>(TelemetryOp::kFault), fault);
  if (!answer) return Error{Errc::kUnavailable, what + "its server went away"};
  switch (answer->result) {
    case NVML_SUCCESS:
      return {};
    case NVML_ERROR_NO_PERMISSION:
      return Error{Errc::kDenied, what + "only its owner and root may break it"};
    default:
      return Error{Errc::kInvalid, what + "no such GPU, or nothing there that could break so"};
  }
}

}  // namespace aliquot::simdriver
