#include "simdriver/faults.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "driver_abi/cuda_constants.h"
#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_constants.h"
#include "simdriver/channel/client.h"

namespace aliquot::simdriver {
namespace {

template <typename Payload>
Result<std::int32_t> ask(const RunningMachine& machine, Op op, const Payload& payload) {
  const std::string what = "simulated machine " + machine.name + ": ";
  auto client = Client::connect(machine.directory / "socket");
  if (!client) return Error{Errc::kUnavailable, what + "its server does not answer"};
  const auto answer = client->ask(op, payload);
  if (!answer) return Error{Errc::kUnavailable, what + "its server went away"};
  return answer->result;
}

// Subject 0x06: results are CUresults.
template <typename Payload>
Status control(const RunningMachine& machine, Op op, const Payload& payload) {
  const auto result = ask(machine, op, payload);
  if (!result) return result.error();
  switch (*result) {
    case CUDA_SUCCESS:
      return {};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return Error{Errc::kExhausted, "simulated machine " + machine.name +
                                         ": too many calls are to fail already; lift them first"};
    default:
      return Error{Errc::kDenied,
                   "simulated machine " + machine.name + ": only its owner and root may break it"};
  }
}

template <typename T>
bool read_number(std::string_view text, T& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size();
}

std::optional<FailNth> failure_from(std::string_view order) {
  FailNth failure{{}, 1, CUDA_ERROR_UNKNOWN};
  if (const std::size_t equals = order.find('='); equals != std::string_view::npos) {
    if (!read_number(order.substr(equals + 1), failure.result)) return std::nullopt;
    order = order.substr(0, equals);
  }
  if (const std::size_t colon = order.find(':'); colon != std::string_view::npos) {
    if (!read_number(order.substr(colon + 1), failure.nth)) return std::nullopt;
    order = order.substr(0, colon);
  }
  if (order.size() >= failure.symbol.size() || failure.nth == 0) return std::nullopt;
  std::ranges::copy(order, failure.symbol.begin());
  return failure;
}

// Why a GPU that there is refuses a fault.
std::string_view refusal_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kEccSingle:
    case FaultKind::kEccDouble:
      return "its memory has no ECC";
    case FaultKind::kRowRemap:
      return "its memory has no spare rows (from Ampere on, with ECC), or none left";
    case FaultKind::kLinkDown:
    case FaultKind::kLinkErrors:
      return "it has no such NVLink, or nothing at its other end";
    default:
      return "nothing there that could break so";
  }
}

}  // namespace

Status inject_fault(const RunningMachine& machine, const FaultRequest& fault) {
  const auto result = ask(machine, static_cast<Op>(TelemetryOp::kFault), fault);
  if (!result) return result.error();
  const std::string what =
      "simulated machine " + machine.name + ", GPU " + std::to_string(fault.gpu) + ": ";
  switch (*result) {
    case NVML_SUCCESS:
      return {};
    case NVML_ERROR_NO_PERMISSION:
      return Error{Errc::kDenied, what + "only its owner and root may break it"};
    default:
      return Error{Errc::kInvalid, what + "no such GPU, or " + std::string(refusal_of(fault.kind))};
  }
}

std::optional<std::uint64_t> link_errors_from(std::string_view order) {
  std::uint32_t link = 0, count = 0;
  const std::size_t colon = order.find(':');
  const bool has_link = colon != std::string_view::npos;
  if ((has_link && !read_number(order.substr(0, colon), link)) ||
      !read_number(has_link ? order.substr(colon + 1) : order, count))
    return std::nullopt;
  return errors_of_link(link, count);
}

Status fail_call(const RunningMachine& machine, const std::string& order) {
  const auto failure = failure_from(order);
  if (!failure)
    return Error{Errc::kInvalid, "fail " + order +
                                     ": expected SYMBOL, SYMBOL:NTH or "
                                     "SYMBOL:NTH=RESULT, as cuMemAlloc_v2:3=2"};
  if (!driver_abi::cuda_row(failure->symbol.data()))
    return Error{Errc::kInvalid, "fail " + order +
                                     ": no such symbol of the driver API; `aliquot "
                                     "abi` lists them"};
  return control(machine, Op::kFailNth, *failure);
}

Status look_up_through_dlsym(const RunningMachine& machine, bool on) {
  return control(machine, Op::kLookups, LookupMode{on ? 1u : 0u});
}

Status lift_call_faults(const RunningMachine& machine) {
  auto client = Client::connect(machine.directory / "socket");
  const auto answer = client ? client->ask(Op::kClearFaults) : std::nullopt;
  if (!answer)
    return Error{Errc::kUnavailable,
                 "simulated machine " + machine.name + ": its server does not answer"};
  if (answer->result == CUDA_SUCCESS) return {};
  return Error{Errc::kDenied,
               "simulated machine " + machine.name + ": only its owner and root may mend it"};
}

}  // namespace aliquot::simdriver
