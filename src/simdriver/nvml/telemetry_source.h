// Where libnvidia-ml gets what changes from: the device server, or a test's own board.
// One call at a time per source; the library takes care of that.
#pragma once

#include <memory>
#include <vector>

#include "driver_abi/nvml_types.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver::nvml {

struct GpuReading {
  GpuTelemetry figures{};
  std::vector<ProcessTelemetry> processes;
};

struct MigReading {
  bool on = false;
  std::vector<MigPart> parts;
};

class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;
  virtual nvmlReturn_t read(unsigned gpu, GpuReading& out) = 0;
  virtual nvmlReturn_t samples(const SamplesRequest& request, std::vector<Sample>& out) = 0;
  // Events after `serial`; `newest` is the serial of the newest one there is.
  virtual nvmlReturn_t events(std::uint64_t serial, std::uint64_t& newest,
                              std::vector<GpuEvent>& out) = 0;
  virtual nvmlReturn_t set(const SetRequest& request) = 0;
  virtual nvmlReturn_t mig(unsigned gpu, MigReading& out) = 0;
  // `id` is that of what was created.
  virtual nvmlReturn_t change_mig(const MigChange& change, unsigned& id) = 0;
};

}  // namespace aliquot::simdriver::nvml
