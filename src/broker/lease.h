// Lease: one tenant's account. Gives out slots, subtracts what the dead held, keeps the limits.
//
// Every step keeps the order of the ledger protocol (wire/quota.h): bytes are subtracted before a
// slot is freed, a limit is stored before it is bumped, so that whoever repeats a step after a
// broker was killed within it finds nothing left to do. Everything read from the ledger is a claim:
// it is clamped, and no loop's length depends on it. On the broker's loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/identity.h"
#include "broker/lease_files.h"
#include "broker/requests.h"
#include "broker/run_membership.h"
#include "broker/unaccounted.h"
#include "common/result.h"
#include "log/log.h"
#include "wire/control.h"
#include "wire/quota.h"

namespace aliquot::broker {

struct LeaseGpu {
  std::uint32_t index = 0;
  std::string uuid;
  std::uint64_t physical_bytes = 0;
  std::uint64_t context_overhead_bytes = 0;
  std::uint64_t time_scale_micro = 1'000'000;
  std::uint64_t limit_bytes = 0;
  std::uint32_t cores = 0;
};

class Lease {
 public:
  // `request` gives everything but the shares, which are decided: `gpus`.
  static Result<std::unique_ptr<Lease>> create(const std::filesystem::path& directory,
                                               const LeaseRequest& request,
                                               const std::vector<LeaseGpu>& gpus, log::Log log);
  // Takes over what another broker left: living processes keep their slots and bytes, the dead are
  // subtracted, a limit that was stored but not bumped is bumped.
  static Result<std::unique_ptr<Lease>> adopt(const std::filesystem::path& directory, log::Log log);

  struct AttachAnswer {
    wire::Answer answer = wire::Answer::kBusy;
    int slot = -1;
    std::string reason;
  };
  AttachAnswer attach(Peer peer, std::uint64_t image);

  // The process lives for the lease from now on. Errc::kExhausted when there are too many.
  Status add_runner(Peer peer);
  bool has_runner(const ProcessIdentity& identity) const;
  // A held lease lives until it is held no more, with or without processes.
  void hold(bool held) { files_.table().held = held ? 1 : 0; }
  bool is_held() const { return files_.table().held != 0; }
  void set_owner(std::uint32_t uid) { files_.table().owner_uid = uid; }
  std::uint32_t owner_uid() const { return files_.table().owner_uid; }
  // How processes of the lease are told by their cgroup; empty: not.
  std::string cgroup() const { return files_.table().cgroup; }

  // Readable when a process of the lease has died; then reap().
  int deaths() const { return deaths_.get(); }
  void reap();
  // The connection that a slot's process attached by has ended: look whether its image is gone.
  void connection_ended(unsigned slot);
  // Looks for processes whose image is gone: some 20 us for each that is attached.
  void check_images();
  // Called for each slot that is taken, those that are included, and whenever one is taken (also
  // anew, by another image) or its process is gone.
  using SlotObserver = std::function<void(unsigned slot, bool taken)>;
  void follow_slots(SlotObserver observer);
  // Once a second: head against mirrors, bytes in free slots, truncation. Every tenth time where no
  // process was since the last.
  void audit();

  // In force when this returns ok. Bytes at most the GPU's memory.
  Status set_limit(unsigned gpu, std::uint64_t bytes);
  // From the next refusal on.
  void set_observed(bool observed);
  bool is_observed() const {
    return wire::Enforcement{grant().enforcement.load()} == wire::Enforcement::kObserve;
  }
  // Its socket had to stop listening for a moment.
  void count_flood();
  // Once a second: so much does the lease hold beyond what is charged and ordinary. What stands
  // twice in a row it may take less.
  void hold_back(unsigned gpu, std::uint64_t excess_bytes);

  // Nobody holds it, no command runs and no attached process lives.
  bool is_over() const { return !is_held() && runners_ == 0 && slot_of_.empty(); }
  // Attached processes keep what they hold but get nothing any more.
  void end(wire::LeaseState state);

  std::string name() const { return grant().name; }
  std::string driver() const { return files_.table().driver; }
  unsigned gpus() const { return grant().gpu_count; }
  std::uint32_t gpu_index(unsigned gpu) const { return files_.table().gpu_index[gpu]; }
  std::string uuid(unsigned gpu) const { return grant().gpu[gpu].uuid_text; }
  std::uint64_t limit_bytes(unsigned gpu) const { return files_.table().granted_bytes[gpu]; }
  std::uint64_t held_back_bytes(unsigned gpu) const { return held_back_[gpu]; }
  std::size_t processes() const { return slot_of_.size(); }
  std::uint32_t cores(unsigned gpu) const { return grant().gpu[gpu].cores; }
  std::uint64_t used_bytes(unsigned gpu) const { return quota(gpu).used(); }
  wire::LeaseState state() const { return wire::LeaseState{grant().state.load()}; }
  const LeaseFiles& files() const { return files_; }
  LeaseGrant as_granted() const;
  LeaseRow row() const;
  bool has_process(std::int32_t pid) const;
  // To every attached process; those that are gone are none.
  void send_signal(int number) const;
  // Processes that belong to the run but never attached, of those given.
  std::vector<std::int32_t> strangers_of_run(const std::vector<std::int32_t>& pids) const;

 private:
  Lease(LeaseFiles files, log::Log log);

  wire::Grant& grant() const { return files_.grant(); }
  wire::Quota quota(unsigned gpu) const { return {files_.ledger(), grant(), gpu}; }
  unsigned slot_count() const { return grant().slot_count; }

  void take_over();
  void watch(int pidfd, std::uint64_t key);
  void show_process(unsigned slot, std::int32_t pid);
  Status enforce_limit(unsigned gpu);
  bool empty_slot(unsigned slot);
  bool free_slot(unsigned slot);
  void tell_slot(unsigned slot, bool taken);
  bool image_is_gone(const TableEntry& entry) const;
  void drop_runner(unsigned runner);
  int unused_slot() const;
  AttachAnswer attach_again(unsigned slot, const Peer& peer, std::uint64_t image);
  Belongs belongs(std::int32_t pid) const;
  void remember_namespaces(std::int32_t pid);
  AttachAnswer refuse(wire::Answer answer, std::string reason);
  void complain(std::string_view text);

  LeaseFiles files_;
  log::Log log_;
  UniqueFd deaths_;
  std::vector<UniqueFd> slot_pidfd_;
  std::vector<UniqueFd> runner_pidfd_;
  std::map<ProcessIdentity, unsigned> slot_of_;
  SlotObserver slot_observer_;
  std::vector<unsigned> stuck_;  // dead slots whose bytes a scribbler kept us from subtracting
  std::array<SteadyExcess, wire::kMaxGpus> excess_;
  std::array<std::uint64_t, wire::kMaxGpus> held_back_{};
  bool written_ = true;  // maybe, since the last audit(): a process was attached
  unsigned idle_rounds_ = 0;
  unsigned runners_ = 0;
  unsigned complaints_ = 0;
  std::uint64_t held_off_ = 0;
};

}  // namespace aliquot::broker
