// GateTwin: the compute gate's virtual-time twin. Tenants, their processes and threads, the host's
// wake latencies and the broker's timers are modelled here; the device is an engine::Engine, and
// every decision is taken by the very functions that the interposer and the broker call
// (gate::TenantGate, gate::Arbiter). Simulated: no GPU, no clock, no thread; same seed, same run.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "engine/engine.h"
#include "gate/arbiter.h"
#include "gate/audit.h"
#include "gate/tenant.h"
#include "gate/united.h"
#include "replay/gate_twin_spec.h"

namespace aliquot::replay {

class GateTwin {
 public:
  GateTwin(const TwinOptions& options, std::vector<TwinTenant> tenants);
  void run();

  // Percent of [from, to) in which the tenant had the device, switches between its own processes
  // included. Resolution 10 ms.
  double share(std::size_t tenant, Nanoseconds from, Nanoseconds to) const;
  double share(std::size_t tenant) const {
    return share(tenant, options_.warmup, options_.duration);
  }
  // What the device has spent on switches among the tenant's own processes.
  Nanoseconds own_switches(std::size_t tenant) const { return tenants_[tenant].own_switches; }
  // Device milliseconds by 10 ms sample.
  const std::vector<double>& samples(std::size_t tenant) const { return tenants_[tenant].samples; }
  double busy_percent() const;
  std::uint64_t launches(std::size_t tenant) const { return tenants_[tenant].launches; }
  // Of requests, in the order they ended; nanoseconds.
  const std::vector<Nanoseconds>& latencies(std::size_t tenant) const {
    return tenants_[tenant].latencies;
  }
  Nanoseconds longest_wait(std::size_t tenant) const { return tenants_[tenant].longest_wait; }
  const gate::Account& account(std::size_t tenant) const;
  std::uint64_t broker_steps() const { return broker_steps_; }
  // Longest time in which a tenant waited for the gate while the device had nothing to do.
  Nanoseconds longest_idle_demand() const { return longest_idle_demand_; }
  // When the audit called the tenant an offender; kNever: it did not.
  Nanoseconds found_at(std::size_t tenant) const { return tenants_[tenant].found_at; }
  // Called after each step of the broker: for invariants.
  using Observer = void (*)(void* context, const GateTwin& twin, Nanoseconds now);
  void observe(Observer observer, void* context) {
    observer_ = observer;
    observer_context_ = context;
  }
  // How long the tenant has waited at the gate by now; 0: it does not.
  Nanoseconds waiting_for(std::size_t tenant) const {
    const Nanoseconds since = tenants_[tenant].waiting_since;
    return since < 0 ? 0 : now_ - since;
  }
  Nanoseconds broker_wakes_at() const { return broker_at_; }
  bool present(std::size_t tenant) const { return tenants_[tenant].present; }
  std::size_t slot(std::size_t tenant) const { return tenants_[tenant].slot; }
  const gate::Arbiter& arbiter() const { return arbiter_; }
  const std::vector<gate::TenantReport>& reports() const { return reports_; }

 private:
  enum class State : std::uint8_t {
    kOff,
    kRunning,
    kSubmitting,
    kFull,
    kAtGate,
    kInLimiter,
    kIdle,
    kGap
  };
  struct Launch {
    Nanoseconds duration = 0;
    Nanoseconds estimate = 0;
    std::uint64_t key = 0;
    bool measured = false;         // by events around it
    Nanoseconds first_event = -1;  // of them: when the work before it in the stream had ended
  };
  struct Thread {
    std::size_t tenant = 0;
    std::size_t process = 0;  // of the tenant
    engine::StreamId stream;
    State state = State::kOff;
    std::uint64_t generation = 0;  // of the pending event
    Launch next;                   // drawn and not yet launched; duration 0: none
    std::deque<Launch> in_flight;
    std::deque<Nanoseconds> requests;  // arrived, not begun
    Nanoseconds request_arrived = 0;
    int burst_left = 0;
    bool began = false;
  };
  struct Tenant {
    TwinTenant spec;
    std::size_t slot = 0;
    bool present = false;
    std::vector<gate::TenantGate> gates;  // one a process, as in programs
    std::vector<gate::UnitedReports::Process> seen;
    gate::UnitedReports united;
    std::optional<gate::TenantReport> last_words;  // of a stopped one
    std::uint32_t free_kernel_of = 0;  // the window whose one kernel some process has had
    gate::Window window;
    std::vector<std::size_t> threads;
    std::vector<engine::ContextId> contexts;
    Nanoseconds own_switches = 0;
    Nanoseconds past_busy = 0;  // of contexts that are gone
    Nanoseconds waiting_since = -1;
    Nanoseconds longest_wait = 0;
    Nanoseconds found_at = engine::kNever;
    std::uint64_t launches = 0;
    std::vector<double> samples;
    std::vector<Nanoseconds> latencies;
  };
  enum class What : std::uint8_t {
    kThread,
    kBroker,
    kArrival,
    kJoin,
    kLeave,
    kResize,
    kDrained,
    kSilent,
    kSample,
    kAudit
  };
  struct Event {
    Nanoseconds time = 0;
    std::uint64_t order = 0;
    What what = What::kThread;
    std::size_t subject = 0;
    std::uint64_t generation = 0;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void push(Nanoseconds time, What what, std::size_t subject, std::uint64_t generation = 0);
  void handle(const Event& event);
  void device_event();
  void take_notices();
  void sample();
  Nanoseconds device_time(const Tenant& tenant) const;
  Nanoseconds host_wake();
  double uniform(std::mt19937_64& random);
  void note_demand();

  // The broker (gate_twin.cc).
  void join(std::size_t tenant);
  void leave(std::size_t tenant);
  void resize(std::size_t tenant);
  void notify();
  void arm(Nanoseconds time);
  void broker_step();
  void decide();
  gate::TenantReport report_of(Tenant& tenant);
  void apply_window(std::size_t tenant);
  void note_allowances();
  void audit();

  // Threads (gate_twin_tenants.cc).
  void draw(Thread& thread);
  void wake(std::size_t thread, Nanoseconds after);
  void resume(std::size_t thread);
  void attempt(std::size_t thread);
  gate::TenantGate& gate_of(const Thread& thread) {
    return tenants_[thread.tenant].gates[thread.process];
  }
  void read_others(Tenant& tenant, std::size_t process);
  gate::TenantGate::Verdict verdict(const Thread& thread, Nanoseconds estimate);
  void wait_at_gate(std::size_t thread);
  void submit(std::size_t thread);
  bool begin_burst(std::size_t thread);
  void request_arrived(std::size_t tenant);
  void completed(const engine::Notice& notice);
  void check_drained(std::size_t thread, bool silent);
  Nanoseconds noisy(Nanoseconds duration);

  TwinOptions options_;
  engine::Engine engine_;
  gate::Arbiter arbiter_;
  gate::Audit audit_;
  Nanoseconds audited_to_ = 0;
  std::vector<Nanoseconds> allowances_;  // by slot, for a moment
  std::vector<Tenant> tenants_;
  std::vector<Thread> threads_;
  std::vector<std::size_t> thread_of_stream_;   // by the stream's slot
  std::vector<std::size_t> tenant_of_context_;  // by the context's slot
  std::vector<std::size_t> tenant_of_slot_;     // by the arbiter's slot
  std::vector<gate::TenantReport> reports_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  Nanoseconds now_ = 0;
  Nanoseconds broker_at_ = engine::kNever;
  std::uint64_t broker_generation_ = 0;
  std::uint64_t broker_steps_ = 0;
  std::uint64_t switches_seen_ = 0;
  Nanoseconds idle_demand_since_ = -1;
  Nanoseconds longest_idle_demand_ = 0;
  std::mt19937_64 work_random_;
  std::mt19937_64 host_random_;
  Observer observer_ = nullptr;
  void* observer_context_ = nullptr;
};

}  // namespace aliquot::replay
