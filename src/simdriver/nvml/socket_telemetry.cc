#include "simdriver/nvml/socket_telemetry.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "simdriver/nvml/library.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver::nvml {

std::optional<Answer> SocketTelemetry::ask(TelemetryOp op, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  // Two processes on one connection would read each other's answers.
  if (owner_ != getpid()) client_.reset();
  if (!client_) {
    client_ = Client::connect(socket_);
    owner_ = getpid();
  }
  if (!client_) return std::nullopt;
  std::optional<Answer> answer = client_->ask(static_cast<Op>(op), payload);
  if (!answer) client_.reset();
  return answer;
}

template <typename Request, typename Head, typename Item>
nvmlReturn_t SocketTelemetry::ask_list(TelemetryOp op, const Request& request, Head& head,
                                       std::vector<Item>& items) {
  const std::optional<Answer> answer = ask(op, std::as_bytes(std::span(&request, 1)));
  if (!answer) return NVML_ERROR_GPU_IS_LOST;  // the server, and all its GPUs, are gone
  if (answer->result != NVML_SUCCESS) return answer->result;
  const std::span<const std::byte> payload(answer->payload);
  if (payload.size() < sizeof(Head) || (payload.size() - sizeof(Head)) % sizeof(Item) != 0)
    return NVML_ERROR_UNKNOWN;
  std::memcpy(&head, payload.data(), sizeof(Head));
  items.resize((payload.size() - sizeof(Head)) / sizeof(Item));
  if (!items.empty())
    std::memcpy(items.data(), payload.data() + sizeof(Head), items.size() * sizeof(Item));
  return NVML_SUCCESS;
}

nvmlReturn_t SocketTelemetry::read(unsigned gpu, GpuReading& out) {
  const nvmlReturn_t result =
      ask_list(TelemetryOp::kGpu, TelemetryRequest{gpu}, out.figures, out.processes);
  if (result == NVML_SUCCESS && out.figures.hang_ms > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(out.figures.hang_ms));
  return result;
}

nvmlReturn_t SocketTelemetry::samples(const SamplesRequest& request, std::vector<Sample>& out) {
  SamplesReply head{};
  return ask_list(TelemetryOp::kSamples, request, head, out);
}

nvmlReturn_t SocketTelemetry::events(std::uint64_t serial, std::uint64_t& newest,
                                     std::vector<GpuEvent>& out) {
  EventsReply head{};
  const nvmlReturn_t result = ask_list(TelemetryOp::kEvents, EventsRequest{serial}, head, out);
  newest = head.newest;
  return result;
}

nvmlReturn_t SocketTelemetry::set(const SetRequest& request) {
  const std::optional<Answer> answer =
      ask(TelemetryOp::kSet, std::as_bytes(std::span(&request, 1)));
  return answer ? answer->result : NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t SocketTelemetry::mig(unsigned gpu, MigReading& out) {
  MigReply head{};
  const nvmlReturn_t result = ask_list(TelemetryOp::kMig, TelemetryRequest{gpu}, head, out.parts);
  out.on = head.on != 0;
  return result;
}

nvmlReturn_t SocketTelemetry::change_mig(const MigChange& change, unsigned& id) {
  const std::optional<Answer> answer =
      ask(TelemetryOp::kMigChange, std::as_bytes(std::span(&change, 1)));
  if (!answer) return NVML_ERROR_GPU_IS_LOST;
  if (const auto changed = answer->as<MigChanged>()) id = changed->id;
  return answer->result;
}

std::optional<Found> find_running_machine() {
  static const char kHere = 0;  // an address in this library
  const auto socket = find_server_socket(&kHere);
  if (!socket || !Client::connect(*socket)) return std::nullopt;
  auto machine = read_machine(socket->parent_path() / "machine.json");
  if (!machine) return std::nullopt;
  return Found{std::move(*machine), std::make_unique<SocketTelemetry>(*socket)};
}

}  // namespace aliquot::simdriver::nvml
