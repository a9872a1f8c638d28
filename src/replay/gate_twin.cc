// The twin's loop, its broker, and what it measures.
#include "replay/gate_twin.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace aliquot::replay {
namespace {

constexpr Nanoseconds kLeastTimer = 1 * kMicrosecond;
constexpr Nanoseconds kToldTail = 50 * kMicrosecond;  // Cheat::kShortensTail

}  // namespace

GateTwin::GateTwin(const TwinOptions& options, std::vector<TwinTenant> tenants)
    : options_(options),
      engine_(options.gpu),
      arbiter_(options.terms, options.arbiter),
      work_random_(options.seed),
      host_random_(options.seed * 77 + 5) {
  for (TwinTenant& spec : tenants) {
    const std::size_t index = tenants_.size();
    Tenant tenant;
    tenant.seen.resize(static_cast<std::size_t>(spec.processes));
    tenant.gates.assign(static_cast<std::size_t>(spec.processes), gate::TenantGate(options.tenant));
    for (gate::TenantGate& gate : tenant.gates)
      gate.set_online(spec.terms.share_class == gate::ShareClass::kOnline);
    for (int i = 0; i < spec.processes * spec.threads; ++i) {
      tenant.threads.push_back(threads_.size());
      Thread thread;
      thread.tenant = index;
      thread.process = static_cast<std::size_t>(i / spec.threads);
      threads_.push_back(std::move(thread));
    }
    push(spec.arrives, What::kJoin, index);
    if (spec.leaves != engine::kNever) push(spec.leaves, What::kLeave, index);
    if (spec.resized_at != engine::kNever) push(spec.resized_at, What::kResize, index);
    if (spec.behaviour == Behaviour::kRequests) push(spec.arrives, What::kArrival, index);
    tenant.spec = std::move(spec);
    tenants_.push_back(std::move(tenant));
  }
  push(0, What::kSample, 0);
  if (options.audited) push(options.gpu.sample_period, What::kAudit, 0);
}

void GateTwin::push(Nanoseconds time, What what, std::size_t subject, std::uint64_t generation) {
  events_.push({time, ++order_, what, subject, generation});
}

double GateTwin::uniform(std::mt19937_64& random) {
  return std::uniform_real_distribution<>(0, 1)(random);
}

Nanoseconds GateTwin::host_wake() {
  const HostModel& host = options_.host;
  const double normal = std::normal_distribution<>()(host_random_);
  double ns = static_cast<double>(host.wake_median) * std::exp(host.wake_sigma * normal);
  if (uniform(host_random_) < host.tail_probability) {
    ns -= std::log(1 - uniform(host_random_)) * static_cast<double>(host.tail_mean);
  }
  return static_cast<Nanoseconds>(ns);
}

void GateTwin::run() {
  while (true) {
    const Nanoseconds device = engine_.next_event();
    const Nanoseconds host = events_.empty() ? engine::kNever : events_.top().time;
    const Nanoseconds next = std::min(device, host);
    if (next > options_.duration) break;
    now_ = next;
    if (device <= host) {
      device_event();
    } else {
      const Event event = events_.top();
      events_.pop();
      engine_.advance(now_);
      handle(event);
    }
    note_demand();
  }
  now_ = options_.duration;
}

void GateTwin::device_event() {
  engine_.advance(now_);
  if (engine_.switches() != switches_seen_) {
    switches_seen_ = engine_.switches();
    const engine::Switch& last = engine_.last_switch();
    const std::size_t contexts = tenant_of_context_.size();
    if (last.from < contexts && last.to < contexts &&
        tenant_of_context_[last.from] == tenant_of_context_[last.to]) {
      tenants_[tenant_of_context_[last.to]].own_switches += last.cost;
    }
  }
  take_notices();
}

void GateTwin::take_notices() {
  for (const engine::Notice& notice : engine_.take_notices()) {
    if (notice.what == engine::Notice::What::kStarted) {
      gate_of(threads_[thread_of_stream_[notice.stream.slot]]).began(notice.time);
    } else {
      completed(notice);
    }
  }
}

void GateTwin::handle(const Event& event) {
  switch (event.what) {
    case What::kThread:
      if (event.generation == threads_[event.subject].generation) resume(event.subject);
      break;
    case What::kBroker:
      if (event.generation == broker_generation_) broker_step();
      break;
    case What::kArrival:
      request_arrived(event.subject);
      break;
    case What::kJoin:
      join(event.subject);
      break;
    case What::kLeave:
      leave(event.subject);
      break;
    case What::kResize:
      resize(event.subject);
      break;
    case What::kDrained:
      check_drained(event.subject, false);
      break;
    case What::kSilent:
      check_drained(event.subject, true);
      break;
    case What::kSample:
      sample();
      break;
    case What::kAudit:
      audit();
      break;
  }
}

Nanoseconds GateTwin::device_time(const Tenant& tenant) const {
  Nanoseconds time = tenant.past_busy + tenant.own_switches;
  for (const engine::ContextId context : tenant.contexts) time += engine_.busy(context, now_);
  return time;
}

void GateTwin::sample() {
  for (Tenant& tenant : tenants_) {
    if (now_ <= options_.warmup) tenant.longest_wait = 0;
    tenant.samples.push_back(static_cast<double>(device_time(tenant)) / 1e6);
  }
  push(now_ + options_.sample_every, What::kSample, 0);
}

double GateTwin::share(std::size_t tenant, Nanoseconds from, Nanoseconds to) const {
  const std::vector<double>& samples = tenants_[tenant].samples;
  const auto first = static_cast<std::size_t>(from / options_.sample_every);
  const std::size_t last =
      std::min(static_cast<std::size_t>(to / options_.sample_every), samples.size() - 1);
  const double period_ms = static_cast<double>(options_.sample_every) / 1e6;
  return 100.0 * (samples[last] - samples[first]) / (static_cast<double>(last - first) * period_ms);
}

double GateTwin::busy_percent() const {
  double sum = 0;
  for (std::size_t i = 0; i < tenants_.size(); ++i) sum += share(i);
  return sum;
}

// A device without work while somebody waits at the gate is what work conservation forbids.
void GateTwin::note_demand() {
  bool waiting = false;
  bool working = false;
  for (const Tenant& tenant : tenants_) {
    if (!tenant.present) continue;
    waiting = waiting || tenant.waiting_since >= 0;
    for (const engine::ContextId context : tenant.contexts) {
      working = working || !engine_.idle(context);
    }
    if (working) break;
  }
  if (working || !waiting) {
    idle_demand_since_ = -1;
    return;
  }
  if (idle_demand_since_ < 0) idle_demand_since_ = now_;
  if (idle_demand_since_ >= options_.warmup) {
    longest_idle_demand_ = std::max(longest_idle_demand_, now_ - idle_demand_since_);
  }
}

void GateTwin::join(std::size_t index) {
  Tenant& tenant = tenants_[index];
  decide();  // as ComputeGpu: each change begins with a step
  tenant.present = true;
  tenant.slot = arbiter_.add(now_, tenant.spec.terms);
  tenant_of_slot_.resize(std::max(tenant_of_slot_.size(), tenant.slot + 1));
  tenant_of_slot_[tenant.slot] = index;
  audit_.forget(tenant.slot);
  std::size_t next = 0;
  for (int p = 0; p < tenant.spec.processes; ++p) {
    const engine::ContextId context =
        engine_.add_context(now_, {.process = index * 1000 + static_cast<std::size_t>(p) + 1});
    tenant.contexts.push_back(context);
    tenant_of_context_.resize(std::max<std::size_t>(tenant_of_context_.size(), context.slot + 1));
    tenant_of_context_[context.slot] = index;
    for (int t = 0; t < tenant.spec.threads; ++t) {
      const std::size_t id = tenant.threads[next++];
      Thread& thread = threads_[id];
      thread.stream = engine_.add_stream(context);
      thread_of_stream_.resize(
          std::max<std::size_t>(thread_of_stream_.size(), thread.stream.slot + 1));
      thread_of_stream_[thread.stream.slot] = id;
      wake(id, static_cast<Nanoseconds>(uniform(work_random_) *
                                        static_cast<double>(options_.host.start_spread)));
    }
  }
  notify();
}

void GateTwin::leave(std::size_t index) {
  Tenant& tenant = tenants_[index];
  decide();
  tenant.past_busy = device_time(tenant);
  tenant.own_switches = 0;
  for (const engine::ContextId context : tenant.contexts) engine_.remove_context(now_, context);
  tenant.contexts.clear();
  for (const std::size_t id : tenant.threads) {
    threads_[id].state = State::kOff;
    ++threads_[id].generation;
  }
  tenant.present = false;
  tenant.waiting_since = -1;
  arbiter_.remove(now_, tenant.slot);
  notify();
}

void GateTwin::resize(std::size_t index) {
  decide();
  arbiter_.set_terms(now_, tenants_[index].slot, tenants_[index].spec.resized);
  notify();
}

void GateTwin::notify() {
  if (!options_.gated) return;
  if (options_.lost_wakes > 0 && uniform(host_random_) < options_.lost_wakes) return;
  const Nanoseconds at = now_ + host_wake();
  if (at >= broker_at_) return;
  broker_at_ = at;
  push(at, What::kBroker, 0, ++broker_generation_);
}

void GateTwin::arm(Nanoseconds time) {
  if (time == engine::kNever) return;
  const Nanoseconds at = std::max(time, now_ + kLeastTimer) + host_wake() / 2;
  if (at >= broker_at_) return;
  broker_at_ = at;
  push(at, What::kBroker, 0, ++broker_generation_);
}

gate::TenantReport GateTwin::report_of(Tenant& tenant) {
  if (tenant.last_words) return *tenant.last_words;
  tenant.united.begin(now_);
  for (std::size_t i = 0; i < tenant.gates.size(); ++i)
    tenant.united.add(tenant.seen[i], tenant.gates[i].report());
  gate::TenantReport report = tenant.united.end();
  switch (tenant.spec.cheat) {
    case Cheat::kReportsLess: {
      const double busy = static_cast<double>(report.busy(now_)) * tenant.spec.report_factor;
      report.busy_ns = static_cast<Nanoseconds>(busy);
      report.busy_since = 0;
      break;
    }
    case Cheat::kHidesQueue:
      report.in_flight = 0;
      report.outstanding_ns = report.head_ns = 0;
      break;
    case Cheat::kShortensTail:
      report.outstanding_ns = std::min(report.outstanding_ns, kToldTail);
      report.head_ns = std::min(report.head_ns, kToldTail);
      break;
    case Cheat::kPhantomDemand:
      report.waiting = 1;
      break;
    case Cheat::kNeverDrains:
      report.waiting = 1;
      report.in_flight = 1000;
      report.since = now_;
      report.outstanding_ns = report.head_ns = 10 * kSecond;
      report.longest_ns = kSecond;
      break;
    case Cheat::kRandomReports: {
      std::uint64_t words[gate::kReportWords];
      for (std::uint64_t& word : words) word = work_random_() >> work_random_() % 64;
      return gate::report_from(words);
    }
    case Cheat::kIgnoresGate:
    case Cheat::kNone:
      break;
  }
  if (now_ >= tenant.spec.stops_at) tenant.last_words = report;
  return report;
}

void GateTwin::decide() {
  ++broker_steps_;
  broker_at_ = engine::kNever;
  reports_.assign(arbiter_.slots(), {});
  for (Tenant& tenant : tenants_) {
    if (tenant.present) reports_[tenant.slot] = report_of(tenant);
  }
  const Nanoseconds next = arbiter_.step(now_, reports_);
  for (const std::size_t slot : arbiter_.changed()) {
    if (arbiter_.present(slot)) apply_window(tenant_of_slot_[slot]);
  }
  if (options_.audited) note_allowances();
  arm(next);
}

void GateTwin::broker_step() {
  decide();
  if (observer_ != nullptr) observer_(observer_context_, *this, now_);
}

void GateTwin::note_allowances() {
  allowances_.clear();
  for (std::size_t slot = 0; slot < arbiter_.slots(); ++slot) {
    allowances_.push_back(arbiter_.account(slot).allowed_ns);
  }
  audit_.note(now_, allowances_);
}

// As the broker does: reads the driver's samples once a period.
void GateTwin::audit() {
  const Nanoseconds period = options_.gpu.sample_period;
  push(now_ + period, What::kAudit, 0);
  std::map<std::pair<std::size_t, Nanoseconds>, double> percent;
  for (const engine::ProcessSample& seen : engine_.process_samples(audited_to_, now_)) {
    percent[{seen.process / 1000, seen.time}] += seen.sm_percent;
    audited_to_ = std::max(audited_to_, seen.time);
  }
  for (const auto& [key, sum] : percent) {
    Tenant& tenant = tenants_[key.first];
    if (!tenant.present) continue;
    const gate::Audit::Finding found = audit_.sample(tenant.slot, key.second, period, sum);
    if (found.excess_ns > 0) arbiter_.charge(tenant.slot, found.excess_ns);
    if (!found.offender || tenant.found_at != engine::kNever) continue;
    tenant.found_at = now_;
    arbiter_.mark_offender(tenant.slot, true);
    if (options_.ends_offenders) leave(key.first);
  }
}

void GateTwin::apply_window(std::size_t index) {
  Tenant& tenant = tenants_[index];
  tenant.window = arbiter_.window(tenant.slot);
  if (!tenant.window.open) return;
  for (const std::size_t id : tenant.threads) {
    if (threads_[id].state == State::kAtGate) {
      gate_of(threads_[id]).leave_gate();
      wake(id, host_wake());
    } else if (threads_[id].state == State::kInLimiter) {
      gate_of(threads_[id]).leave_launch();
      wake(id, options_.host.sync_wake);
    }
  }
}

const gate::Account& GateTwin::account(std::size_t tenant) const {
  return arbiter_.account(tenants_[tenant].slot);
}

}  // namespace aliquot::replay
