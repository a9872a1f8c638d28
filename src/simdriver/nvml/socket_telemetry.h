// Telemetry over the channel to the device server. Connects when first asked, again in a child of
// fork. One thread at a time holds it (it locks itself).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <optional>

#include "simdriver/channel/client.h"
#include "simdriver/nvml/telemetry_source.h"

namespace aliquot::simdriver::nvml {

class SocketTelemetry final : public TelemetrySource {
 public:
  explicit SocketTelemetry(std::filesystem::path socket) : socket_(std::move(socket)) {}

  nvmlReturn_t read(unsigned gpu, GpuReading& out) override;
  nvmlReturn_t samples(const SamplesRequest& request, std::vector<Sample>& out) override;
  nvmlReturn_t events(std::uint64_t serial, std::uint64_t& newest,
                      std::vector<GpuEvent>& out) override;
  nvmlReturn_t set(const SetRequest& request) override;
  nvmlReturn_t mig(unsigned gpu, MigReading& out) override;
  nvmlReturn_t change_mig(const MigChange& change, unsigned& id) override;

 private:
  // Reads a head and a list of items out of the answer.
  template <typename Request, typename Head, typename Item>
  nvmlReturn_t ask_list(TelemetryOp op, const Request& request, Head& head,
                        std::vector<Item>& items);
  std::optional<Answer> ask(TelemetryOp op, std::span<const std::byte> payload);

  std::filesystem::path socket_;
  std::mutex mutex_;
  pid_t owner_ = 0;  // the process that connected
  std::optional<Client> client_;
};

}  // namespace aliquot::simdriver::nvml
