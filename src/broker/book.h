// Book: all leases of a broker. Creates, admits, adopts, changes and ends them; keeps their
// sockets.
//
// What can be asked of a broker, without the socket it is asked through: aliquotd calls it
// directly. Loop thread only.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/admission.h"
#include "broker/compute.h"
#include "broker/gpu_claims.h"
#include "broker/gpu_probe.h"
#include "broker/lease.h"
#include "broker/lease_socket.h"
#include "broker/loop.h"
#include "broker/requests.h"

namespace aliquot::broker {

struct BookOptions {
  std::filesystem::path directory;  // leases lie in it, one directory each
  unsigned mode = 0700;             // of it; 0711: their tenants may be other users
  IdentityPath identity = IdentityPath::kAuto;
  SocketLimits socket;
  Chooser choose = least_room;
  bool hold_guarded_only = false;  // hold() refuses where the kernel makes no read-only mount
  log::Log log;
};

class Book {
 public:
  Book(BookOptions options, ProbeSource& probes, Loop& loop);

  // Leases that another broker left: those still alive go on, the others are removed.
  Status adopt_all();

  // `runner` is the process that the lease lives for. Errc::kExhausted: no room now.
  Result<LeaseGrant> create(LeaseRequest request, Peer runner);
  // A lease that lives until release(), whichever processes come and go: for whoever starts them
  // later (the node daemon's containers). `request.cgroup` tells which belong.
  Result<LeaseGrant> hold(const LeaseRequest& request);
  // Its processes keep what they have but get nothing any more; gone with the last of them.
  Status release(const std::string& name);
  std::vector<std::string> held_names() const;
  // Who may change it besides root.
  Result<std::uint32_t> owner_of(const std::string& name);
  Result<LeaseGrant> join(const std::string& name, Peer runner);
  Result<LeaseRow> row(const std::string& name);
  // Leases after `after` by name, at most `limit`.
  std::vector<LeaseRow> rows_after(const std::string& after, std::size_t limit);
  // Changes of one lease: all of them are in force when this returns ok, none where one does not
  // fit.
  Status set_shares(const std::vector<ShareChange>& changes);
  // Whether limits of memory are kept or only watched.
  Status set_observed(const std::string& name, bool observed);
  // In force when it returns ok.
  Status set_gpu(const GpuChange& change);
  Result<std::vector<GpuSettings>> gpu_settings(const std::string& driver);
  Result<std::vector<RoomRow>> room(const std::string& driver);
  std::vector<BypassRow> bypasses();
  // The reports above use one measurement of each driver until this is called.
  void measure_again();

  // Periodic work; bounded. `often` four times a second, `seldom` once a second.
  void often();
  void seldom();
  std::size_t size() const { return leases_.size(); }
  // Grows whenever room may have come.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Entry {
    std::unique_ptr<Lease> lease;
    std::unique_ptr<LeaseSocket> socket;
  };
  using Entries = std::map<std::string, Entry>;
  struct OpenProbe {
    std::unique_ptr<GpuProbe> probe;
    std::vector<ProbedGpu> last;
    bool recent = false;
    std::optional<std::vector<BypassRow>> bypasses;  // in `last`, once asked for
  };

  Result<std::vector<ProbedGpu>> probe(const std::string& driver);
  // As measured since measure_again(): one question for a report over many leases. Null: cannot
  // be asked.
  const std::vector<ProbedGpu>* recent(const std::string& driver);
  std::vector<RoomRow> rooms_of(const std::string& driver, const std::vector<ProbedGpu>& gpus);
  Status adopt(const std::filesystem::path& directory);
  Status enter(std::unique_ptr<Lease> lease);
  // Admits the request and makes its lease, with nobody in it; to be entered.
  Result<std::unique_ptr<Lease>> make(const LeaseRequest& request);
  Result<Entries::iterator> find(const std::string& name);
  Status claim(const std::string& driver, const std::vector<LeaseGpu>& gpus);
  void release_claims();
  void reclaim_gpus(const Lease& lease);
  void remove_finished();
  Entries::iterator remove(Entries::iterator entry);
  void discard(const std::filesystem::path& directory);
  // The least excess of each lease and GPU in the readings so far.
  using Excesses = std::map<std::pair<std::string, unsigned>, std::uint64_t>;
  // `unattached`: those of the GPU's processes that are of no lease.
  static std::uint64_t measured_bytes(const Lease& lease, const ProbedGpu& gpu,
                                      const std::vector<BypassRow>& unattached);
  bool read_excess(const std::string& driver, Excesses& least);
  void hold_to_measured();
  std::string fresh_name();
  void add_measured(LeaseRow& row);
  // By index on the machine or UUID; empty: all of the lease. Numbers within the lease.
  static Result<std::vector<unsigned>> gpus_named(const Lease& lease, const std::string& gpu);
  struct FittingChange;
  Result<FittingChange> fitting(const Lease& lease, unsigned gpu, const ShareChange& change,
                                const std::vector<RoomRow>& rooms) const;
  Result<std::vector<FittingChange>> all_fitting(const Lease& lease,
                                                 const std::vector<ShareChange>& changes);
  // Of all leases but one, on the GPU of the settings and by them.
  std::uint32_t promised_cores(const std::string& driver, const GpuSettings& settings,
                               const Lease* except) const;
  std::uint32_t guaranteed_cores(const Lease& lease, unsigned gpu,
                                 const GpuSettings& settings) const;
  // Processes on GPUs that are attached to no lease; rows without a lease.
  std::vector<BypassRow> unattached(const std::vector<ProbedGpu>& gpus) const;
  // Those of them that are of a lease's run.
  std::vector<BypassRow> bypasses_among(const std::string& driver,
                                        const std::vector<ProbedGpu>& gpus) const;
  void audit_compute();
  void answer_offence(const Compute::Offence& offence, const std::vector<ProbedUse>& uses);
  Status check_terms(const LeaseRequest& request, const std::vector<LeaseGpu>& gpus) const;
  Status check_compute(const Lease& lease, unsigned gpu, const gate::TenantTerms& terms) const;
  Result<gate::TenantTerms> changed_terms(const Lease& lease, unsigned gpu,
                                          const ComputeChange& change) const;
  void set_terms(Lease& lease, unsigned gpu, const gate::TenantTerms& terms);

  BookOptions options_;
  ProbeSource& probes_;
  Loop& loop_;
  std::map<std::string, OpenProbe> open_probes_;
  GpuClaims claims_;
  Entries leases_;
  Compute compute_;  // uses the leases' files
  std::uint64_t changes_ = 0;
  unsigned next_number_ = 1;
  unsigned rounds_ = 0;  // of often()
};

}  // namespace aliquot::broker
