// The in-memory twin of the device server for tests: a board, and use that the test sets.
// One thread at a time.
#pragma once

#include <vector>

#include "simdriver/nvml/telemetry_source.h"
#include "simdriver/telemetry_board.h"

namespace aliquot::simdriver::nvml {

class FakeTelemetry final : public TelemetrySource {
 public:
  explicit FakeTelemetry(const MachineSpec& machine)
      : board(machine), use(machine.gpus.size()), gpu_samples(machine.gpus.size()) {}

  TelemetryBoard board;
  std::vector<GpuReading> use;                   // per GPU; the board's part is filled in
  std::vector<std::vector<Sample>> gpu_samples;  // per GPU, of every kind

  nvmlReturn_t read(unsigned gpu, GpuReading& out) override {
    out = use[gpu];
    board.fill(gpu, out.figures);
    out.figures.process_count = static_cast<std::uint32_t>(out.processes.size());
    return NVML_SUCCESS;
  }
  nvmlReturn_t samples(const SamplesRequest& request, std::vector<Sample>& out) override {
    out.clear();
    for (const Sample& sample : gpu_samples[request.gpu]) {
      const bool of_process = sample.pid != 0;
      if (of_process == (request.kind == SampleKind::kProcesses) && sample.at_us > request.since_us)
        out.push_back(sample);
    }
    return NVML_SUCCESS;
  }
  nvmlReturn_t events(std::uint64_t serial, std::uint64_t& newest,
                      std::vector<GpuEvent>& out) override {
    newest = board.newest_event();
    out = board.events_after(serial);
    return NVML_SUCCESS;
  }
  nvmlReturn_t set(const SetRequest& request) override {
    return board.apply(request) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  }
  nvmlReturn_t mig(unsigned gpu, MigReading& out) override {
    out = {board.mig_on(gpu), board.mig_parts(gpu)};
    return NVML_SUCCESS;
  }
  nvmlReturn_t change_mig(const MigChange& change, unsigned& id) override {
    return board.apply(change, id) == MigResult::kDone ? NVML_SUCCESS
                                                       : NVML_ERROR_INSUFFICIENT_RESOURCES;
  }
};

}  // namespace aliquot::simdriver::nvml
