// ProbePool: the daemon's eyes on the GPUs: one aliquot-probe for each, asked through a pipe.
//
// An answer that does not come costs one GPU its freshness: it keeps its last reading and its age
// grows, no new lease fits on it, the others are served. A probe that has been silent for long is
// killed and started again; one that ended is started again with growing pauses. What is learnt
// goes to a ProbeListener (health, metrics). Loop thread only, but latest(), which any may call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "broker/gpu_probe.h"
#include "broker/loop.h"
#include "log/log.h"
#include "node/child_process.h"
#include "node/probe_line.h"

namespace aliquot::node {

// What of a GPU is known without asking it.
struct KnownGpu {
  std::string uuid, name, bus_id;
  std::uint64_t total_bytes = 0;  // as the inventory had it
  std::uint64_t context_overhead_bytes = 0;
  std::uint64_t time_scale_micro = 1'000'000;
};

struct LatestReading {
  std::string uuid;
  std::optional<GpuReading> reading;  // the last one there was
  Nanoseconds read_at = 0;            // on the loop's clock; 0: never
  unsigned restarts = 0;              // of its probe
};

class ProbeListener {
 public:
  virtual ~ProbeListener() = default;
  virtual void read(const std::string& uuid, const GpuReading& reading) = 0;
  // No answer within the time it has; told again after each such time.
  virtual void silent(const std::string& uuid) = 0;
  virtual void xid(const std::string& uuid, unsigned xid) = 0;
};

class ProbePool {
 public:
  struct Options {
    std::filesystem::path program;        // aliquot-probe
    std::filesystem::path libnvidia_ml;   // what it is to ask
    bool machine_wide = false;            // a real driver
    Nanoseconds ask_every = 5 * kSecond;  // at least a tick, which is a second
    log::Log log;
  };
  // `loop` and `listener` (may be null) outlive it.
  ProbePool(Options options, std::vector<KnownGpu> gpus, broker::Loop& loop,
            ProbeListener* listener);
  ~ProbePool();
  ProbePool(const ProbePool&) = delete;
  ProbePool& operator=(const ProbePool&) = delete;

  // Another inventory: probes of GPUs that are gone end, of new ones start.
  void set_gpus(std::vector<KnownGpu> gpus);
  // Asks every GPU that is not silent already what is held of it, waits at most 50 ms, and says
  // what is known.
  std::vector<broker::ProbedGpu> measure();
  // What the probes have told lately of who used a GPU, by its place in measure(); asks nobody.
  std::vector<broker::ProbedUse> use(std::uint32_t gpu, std::uint64_t after_us) const;
  std::vector<LatestReading> latest() const;
  bool is_machine_wide() const { return options_.machine_wide; }
  // Whole readings, four times in a health check's interval; on the loop.
  void ask_every(Nanoseconds interval);

 private:
  struct Probe {
    KnownGpu gpu;
    std::optional<ChildProcess> child;
    std::string partial;            // of a line
    Nanoseconds asked_at = 0;       // 0: no question is open
    Nanoseconds started_at = 0;     // or tried to
    Nanoseconds last_asked_at = 0;  // for a whole reading
    Nanoseconds read_at = 0;        // the whole of `reading`
    Nanoseconds held_at = 0;        // its memory and processes, which may be younger
    Nanoseconds pause = 0;
    unsigned restarts = 0;
    Nanoseconds told_silent_at = 0;  // 0: not since its last answer
    std::optional<GpuReading> reading;
    std::vector<broker::ProbedUse> use;  // the newest samples
  };

  void tick();
  void start(Probe& probe);
  void stop(Probe& probe);
  void ask(Probe& probe, char question);
  bool wants_reading(const Probe& probe) const;
  void drain(Probe& probe);
  void take(Probe& probe, const ProbeLine& line);
  static void keep_use(Probe& probe, const std::vector<inventory::NvmlUse>& samples);
  void await_answers();
  broker::ProbedGpu row(const Probe& probe) const;

  Options options_;
  broker::Loop& loop_;
  ProbeListener* listener_;
  // Pointers: handlers on the loop refer to them.
  std::vector<std::unique_ptr<Probe>> probes_;
  mutable std::mutex mutex_;
  std::vector<LatestReading> latest_;  // guarded by mutex_
};

}  // namespace aliquot::node
