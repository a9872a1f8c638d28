// Compute: who may use which GPU when. One ComputeThread for each GPU that a lease is on, and what
// administrators have set for GPUs, which outlives leases and brokers (file `gpus`).
//
// Leaves to others: the leases (book.h), the decisions (gate::Arbiter). Loop thread only.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/compute_thread.h"
#include "broker/gpu_probe.h"
#include "broker/lease.h"
#include "broker/requests.h"
#include "common/result.h"
#include "log/log.h"

namespace aliquot::broker {

gate::GpuTerms terms_of(const GpuSettings& settings);

class Compute {
 public:
  // `file` keeps the GPUs' settings; one that cannot be read is said in the log.
  Compute(std::filesystem::path file, log::Log log);

  // The lease takes part on its GPUs until leave(); its processes' slots are followed.
  void enter(Lease& lease);
  void leave(Lease& lease);
  // The lease's terms on one of its GPUs have changed in its grant.
  void read_terms(const Lease& lease, unsigned gpu);

  GpuSettings settings(const std::string& driver, const std::string& uuid) const;
  // In force and written down when this returns ok.
  Status set(const GpuSettings& settings);

  // What is to be asked of drivers: of the GPUs on which leases have processes.
  struct Question {
    std::string driver;
    std::uint32_t gpu = 0;  // place on the machine
    std::string uuid;
    std::uint64_t after_us = 0;
  };
  std::vector<Question> questions() const;
  // A lease whose work has passed its gate by, and what is to become of it.
  struct Offence {
    const Lease* lease = nullptr;
    unsigned gpu = 0;  // of the lease
    OnBypass action = OnBypass::kReport;
    bool first = false;  // not found before
  };
  // Compares what the driver measured until `now_us` (since 1970) with what windows allowed.
  std::vector<Offence> judge(const Question& question, const std::vector<ProbedUse>& uses,
                             std::uint64_t now_us);

  // Charges what was used until now: of the lease's GPUs, without one of all.
  void charge(const Lease* lease = nullptr);
  // Fills in what is known of the lease's compute shares as of the last charge(); `row` is the
  // lease's own.
  void add_compute(const Lease& lease, LeaseRow& row) const;
  // Once a second: what was used lately.
  void seldom();

 private:
  struct Gpu {
    std::unique_ptr<ComputeThread> thread;
    unsigned leases = 0;
    double slowness = 1;
    // The driver's sample period is not told: it is the least time between two samples.
    std::uint64_t last_us = 0;
    std::uint64_t period_us = 0;
    unsigned periods_seen = 0;
  };
  // One lease on one GPU.
  struct Seat {
    Gpu* gpu = nullptr;
    std::size_t tenant = 0;
    Nanoseconds charged_ns = 0;  // when last looked at
    Nanoseconds looked_at = 0;
    std::uint32_t busy = 0;  // 1/100 % of the last second
    void look(Nanoseconds now, Nanoseconds charged);
  };

  Gpu& gpu_of(const Lease& lease, unsigned gpu);
  Gpu* gpu_called(const std::string& driver, const std::string& uuid);
  std::optional<Offence> judge_seat(const Lease& lease, unsigned gpu,
                                    const std::vector<ProbedUse>& uses, std::uint64_t now_us);
  static void tell_policy(const Lease& lease, unsigned gpu, wire::Policy policy);
  static gate::GpuTerms in_machine_time(gate::GpuTerms terms, double slowness);

  std::filesystem::path file_;
  log::Log log_;
  std::map<std::string, GpuSettings> settings_;  // by driver and UUID
  std::map<std::string, Gpu> gpus_;              // the same
  std::map<const Lease*, std::vector<Seat>> seats_;
};

}  // namespace aliquot::broker
