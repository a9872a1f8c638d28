// What the device server keeps: the GPUs with their books and time, the client processes with
// their contexts, the shared blocks, the faults to inject. Handlers (handlers.h) change it on
// request, the loop (server.h) in the course of time. The loop's thread only.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"
#include "simdriver/machine_spec.h"
#include "simdriver/server/block_table.h"
#include "simdriver/server/device_books.h"
#include "simdriver/server/exports.h"
#include "simdriver/server/machine_clock.h"
#include "simdriver/server/shared_page.h"
#include "simdriver/server/timeline.h"
#include "simdriver/telemetry_board.h"

namespace aliquot::simdriver {

inline constexpr std::int32_t kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED

// A GPU, or a MIG compute instance: multiprocessors of its own, and the memory of its GPU instance,
// which it shares with the others in there (hence the shared books).
struct Device {
  Device(unsigned gpu_index, const GpuModel& gpu_model);
  Device(unsigned number_of_it, unsigned gpu_index, GpuModel of_instance, Uuid its_uuid,
         std::shared_ptr<DeviceBooks> of_gpu_instance);
  unsigned number;  // by which clients ask for it; a GPU's is its index
  unsigned index;   // of the GPU that it is or lies in
  std::optional<GpuModel> cut_down;
  Uuid uuid{};  // of an instance
  const GpuModel& model;
  std::shared_ptr<DeviceBooks> shared_books;
  DeviceBooks& books;
  Timeline timeline;
  bool gone = false;  // an instance that was destroyed
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  bool is_instance() const { return cut_down.has_value(); }
};

// One context of one client: its two pages, and how far its ring has been read.
struct ContextEntry {
  ContextKey key = 0;
  SessionId session = 0;
  unsigned device = 0;
  std::uint64_t charged_bytes = 0;
  std::uint32_t head = 0;
  Nanoseconds last_submitted_ns = 0;
  SharedPage<ClientPage> client;
  SharedPage<ServerPage> server;
  bool changed = false;   // something to wake waiters for
  bool promised = false;  // one of its waiters was told when (promises.h)
};

// One client process (or one library in it): lives as long as its connection and its process.
struct Session {
  SessionId id = 0;
  pid_t pid = 0;
  uid_t uid = 0;
  bool greeted = false;
  std::string program;  // for telemetry: the name of its executable
  UniqueFd socket;
  UniqueFd process;   // pidfd
  UniqueFd doorbell;  // eventfd
  std::uint64_t committed_bytes = 0;
  std::vector<ContextKey> contexts;
};

class MachineState {
 public:
  // `host_budget_bytes`: how much of the simulated memory may be backed by real memory at a time.
  static Result<std::unique_ptr<MachineState>> make(MachineSpec spec, const Clock& host,
                                                    std::uint64_t host_budget_bytes);

  const MachineSpec& spec() const { return spec_; }
  const MachineClock& clock() const { return clock_; }
  // In the machine's time, as all times here but those that a client writes.
  Nanoseconds now() const { return clock_.now(); }
  // A GPU or an instance; nullptr: there is none of that number.
  Device* device(std::uint32_t number);
  std::uint32_t gpu_count() const { return static_cast<std::uint32_t>(spec_.gpus.size()); }
  // GPUs first, then instances, those that are gone too.
  std::vector<std::unique_ptr<Device>>& devices() { return devices_; }
  std::map<SessionId, std::unique_ptr<Session>>& sessions() { return sessions_; }
  std::map<ContextKey, std::unique_ptr<ContextEntry>>& contexts() { return contexts_; }
  BlockTable& blocks() { return blocks_; }
  Exports& exports() { return exports_; }
  TelemetryBoard& board() { return board_; }
  Nanoseconds started() const { return clock_.began(); }
  SharedPage<MachinePage>& page() { return page_; }

  Session& add_session(std::unique_ptr<Session> session);
  // Everything the process had is free when this returns.
  void end_session(SessionId id);
  // `active_thread_percent` counts where the machine has MPS.
  Result<ContextEntry*> open_context(Session& session, std::uint32_t device,
                                     std::uint32_t active_thread_percent = 100);
  bool close_context(Session& session, ContextKey key);
  // False: past the host's budget.
  bool commit(Session& session, std::int64_t bytes);
  void apply(const ChargeMove& move);
  // Blocks that descriptors held which are closed by now.
  void end_closed_exports();
  // The instances of the GPU are now as its layout says (board()); one that goes has no contexts.
  void follow_mig(unsigned gpu);
  Device* instance(unsigned gpu, std::uint32_t gpu_instance, std::uint32_t compute_instance);
  bool in_use(const Device& device) const;

  // As after a fault of the GPU: its contexts answer `result` from now on; caught up before.
  void lose_contexts(unsigned device, std::int32_t result);

  // Reads what the clients have published, and brings every GPU up to the present, which it
  // returns.
  Nanoseconds catch_up();
  // Tells the clients; wakes those that wait.
  void publish();
  // When to look again because somebody waits; nothing: not before a message.
  std::optional<Nanoseconds> next_look() const;
  bool has_work() const;

  bool stop_requested = false;

 private:
  MachineState(MachineSpec spec, const Clock& host, std::uint64_t host_budget_bytes);
  // A stream (held by a kHold) that goes on when one of another GPU has come to a place.
  struct CrossWait {
    ContextKey context;
    std::uint32_t stream;
    std::uint64_t seq;
    ContextKey other;
    std::uint32_t other_stream;
    std::uint64_t other_seq;
  };
  std::optional<CrossWait> cross_wait_of(const ContextEntry& context, const Command& command) const;
  bool settle_cross_waits(Nanoseconds at);
  void advance_together(Nanoseconds to);
  std::optional<Nanoseconds> next_event_of_any() const;
  struct Drained {
    ContextEntry* context;
    Command command;
  };
  void drain(ContextEntry& context);
  void promise_where_alone();
  void apply_drained();
  void lose(ContextEntry& context, std::int32_t result, Nanoseconds at);
  // For a bad command: at its GPU's own time, so that what others have submitted keeps its place.
  void lose_now(ContextEntry& context) { lose(context, kLaunchFailed, last_event(context)); }
  Nanoseconds last_event(const ContextEntry& context) const {
    return devices_[context.device]->timeline.engine().last_event();
  }

  MachineSpec spec_;
  MachineClock clock_;
  TelemetryBoard board_;
  std::uint64_t host_budget_bytes_;
  std::uint64_t committed_bytes_ = 0;
  std::uint64_t last_id_ = 0;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<ContextKey, std::unique_ptr<ContextEntry>> contexts_;
  BlockTable blocks_;
  Exports exports_;
  SharedPage<MachinePage> page_;
  std::vector<CrossWait> cross_waits_;
  std::vector<Drained> drained_;
};

}  // namespace aliquot::simdriver
