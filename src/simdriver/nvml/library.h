// The state behind the exported NVML functions: which machine, how often initialised, where
// telemetry comes from. One per process, as in the library that it stands for; tests make their
// own machine current with use().
//
// Any thread. A call holds the library (Held) while it runs, so that nvmlShutdown from elsewhere
// cannot take the machine away under it. Held once per call: a body that holds it calls no body.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "driver_abi/nvml_types.h"
#include "simdriver/machine_spec.h"
#include "simdriver/nvml/telemetry_source.h"

// What a device handle points to; programs never look inside.
struct nvmlDevice_st {
  unsigned gpu = 0;
};

namespace aliquot::simdriver::nvml {

// One GPU, as the bodies of the functions see it. Valid while the library is held.
struct Gpu {
  unsigned index;
  nvmlDevice_t handle;
  const MachineSpec& machine;
  TelemetrySource& telemetry;

  const GpuSpec& spec() const { return machine.gpus[index]; }
  const GpuModel& model() const { return machine.model_of(index); }
};

class Library {
 public:
  static Library& instance();

  // nvmlInit: finds the machine the first time, counts afterwards.
  nvmlReturn_t start(bool need_gpus);
  nvmlReturn_t stop();

  // Puts a machine in place of the one that start() would find. For tests; not while started.
  void use(MachineSpec machine, std::unique_ptr<TelemetrySource> telemetry);

  class Held {
   public:
    explicit Held(Library& library) : library_(library), lock_(library.mutex_) {}
    bool running() const { return library_.users_ > 0; }
    const MachineSpec& machine() const { return library_.machine_; }
    TelemetrySource& telemetry() const { return *library_.telemetry_; }
    // Nothing for a handle that this library did not give out.
    std::optional<Gpu> gpu(nvmlDevice_t handle) const;
    nvmlDevice_t handle(unsigned gpu) const { return &library_.handles_[gpu]; }
    unsigned gpu_count() const { return static_cast<unsigned>(library_.handles_.size()); }

   private:
    Library& library_;
    std::shared_lock<std::shared_mutex> lock_;
  };

 private:
  nvmlReturn_t find_machine();

  std::shared_mutex mutex_;
  unsigned users_ = 0;
  bool machine_given_ = false;
  MachineSpec machine_;
  std::unique_ptr<TelemetrySource> telemetry_;
  std::deque<nvmlDevice_st> handles_;  // kept over shutdown: old handles stay comparable
};

// A machine and a source of its telemetry, as found from where this library lies.
struct Found {
  MachineSpec machine;
  std::unique_ptr<TelemetrySource> telemetry;
};
std::optional<Found> find_running_machine();

}  // namespace aliquot::simdriver::nvml
