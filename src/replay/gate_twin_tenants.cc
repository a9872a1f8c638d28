// The twin's tenants: threads that launch kernels, as programs do through the interposer.
#include <algorithm>
#include <cmath>

#include "replay/gate_twin.h"

namespace aliquot::replay {
namespace {

constexpr Nanoseconds kLongestPareto = 50 * kMillisecond;
constexpr std::size_t kDriverQueue = 1000;  // launches that a stream takes before it blocks

}  // namespace

Nanoseconds GateTwin::noisy(Nanoseconds duration) {
  const double factor = 1 + options_.host.noise * std::normal_distribution<>()(work_random_);
  return static_cast<Nanoseconds>(static_cast<double>(duration) * factor);
}

// Decides what the thread launches next.
void GateTwin::draw(Thread& thread) {
  if (thread.next.duration > 0) return;
  const KernelMix& mix = tenants_[thread.tenant].spec.mix;
  const double choice = uniform(work_random_);
  std::size_t kind = 0;
  double sum = mix.classes[0].probability;
  while (kind + 1 < mix.classes.size() && choice >= sum) sum += mix.classes[++kind].probability;
  auto duration = static_cast<double>(mix.classes[kind].duration_ns);
  if (mix.pareto) {
    duration = std::min(duration * std::pow(1 - uniform(work_random_), -1 / 1.5) / 3.0,
                        static_cast<double>(kLongestPareto));
  } else if (mix.sigma > 0) {
    const double normal = std::normal_distribution<>()(work_random_);
    duration *= std::exp(mix.sigma * normal - mix.sigma * mix.sigma / 2);
  }
  thread.next.duration = std::max<Nanoseconds>(kMicrosecond, static_cast<Nanoseconds>(duration));
  thread.next.key = thread.tenant * 16 + kind + 1;
}

void GateTwin::wake(std::size_t id, Nanoseconds after) {
  threads_[id].state = State::kRunning;
  push(now_ + after, What::kThread, id, ++threads_[id].generation);
}

void GateTwin::resume(std::size_t id) {
  Thread& thread = threads_[id];
  Tenant& tenant = tenants_[thread.tenant];
  if (thread.state == State::kOff) return;
  if (thread.state == State::kAtGate) {
    notify();
    push(now_ + options_.tenant.ask_again, What::kThread, id, ++thread.generation);
    return;
  }
  if (thread.state == State::kSubmitting) submit(id);
  if (thread.state == State::kInLimiter) gate_of(thread).leave_launch();
  thread.state = State::kRunning;
  const TwinTenant& spec = tenant.spec;
  const auto full = static_cast<std::size_t>(
      spec.behaviour == Behaviour::kSaturating ? spec.depth : static_cast<int>(kDriverQueue));
  if (thread.in_flight.size() >= full) {
    thread.state = State::kFull;
    return;
  }
  if (spec.behaviour != Behaviour::kSaturating && thread.burst_left == 0 && !begin_burst(id)) {
    return;
  }
  attempt(id);
}

// A burst is over: wait for it, then for the next reason to work. False: not yet.
bool GateTwin::begin_burst(std::size_t id) {
  Thread& thread = threads_[id];
  Tenant& tenant = tenants_[thread.tenant];
  if (!thread.in_flight.empty()) {
    thread.state = State::kFull;
    return false;
  }
  if (tenant.spec.behaviour == Behaviour::kTraining) {
    if (thread.began) {
      thread.began = false;
      thread.state = State::kGap;
      const double spread = 0.8 + 0.4 * uniform(work_random_);
      push(now_ + static_cast<Nanoseconds>(static_cast<double>(tenant.spec.gap) * spread),
           What::kThread, id, ++thread.generation);
      return false;
    }
    thread.began = true;
  } else {
    if (thread.request_arrived > 0) tenant.latencies.push_back(now_ - thread.request_arrived);
    thread.request_arrived = 0;
    if (thread.requests.empty()) {
      thread.state = State::kIdle;
      return false;
    }
    thread.request_arrived = thread.requests.front();
    thread.requests.pop_front();
  }
  thread.burst_left = tenant.spec.burst_kernels;
  return true;
}

void GateTwin::request_arrived(std::size_t index) {
  Tenant& tenant = tenants_[index];
  const double wait = -std::log(1 - uniform(work_random_)) / tenant.spec.requests_per_second;
  push(now_ + static_cast<Nanoseconds>(wait * static_cast<double>(kSecond)), What::kArrival, index);
  if (!tenant.present) return;
  Thread& thread = threads_[tenant.threads[0]];
  thread.requests.push_back(now_);
  if (thread.state == State::kIdle) wake(tenant.threads[0], 0);
}

// What the other processes of the lease have told in the ledger.
void GateTwin::read_others(Tenant& tenant, std::size_t process) {
  gate::OtherProcesses others;
  for (std::size_t i = 0; i < tenant.gates.size(); ++i)
    if (i != process) others.add(tenant.gates[i].report_with_promises(now_), now_);
  tenant.gates[process].set_others(others);
  if (tenant.free_kernel_of == tenant.window.number)
    tenant.gates[process].free_kernel_taken(tenant.window.number);
}

gate::TenantGate::Verdict GateTwin::verdict(const Thread& thread, Nanoseconds estimate) {
  Tenant& tenant = tenants_[thread.tenant];
  using Answer = gate::TenantGate::Answer;
  if (!options_.gated || tenant.spec.cheat == Cheat::kIgnoresGate) return {Answer::kGo, 0};
  if (tenant.spec.cheat == Cheat::kPhantomDemand) return {Answer::kGate, 0};
  const bool overfills =
      tenant.spec.cheat == Cheat::kHidesQueue || tenant.spec.cheat == Cheat::kShortensTail;
  if (overfills && tenant.window.open) return {Answer::kGo, 0};
  read_others(tenant, thread.process);
  const auto said = gate_of(thread).may_launch(now_, tenant.window, estimate);
  if (said.answer == Answer::kGo && tenant.window.limited)
    tenant.free_kernel_of = tenant.window.number;
  return said;
}

void GateTwin::attempt(std::size_t id) {
  Thread& thread = threads_[id];
  Tenant& tenant = tenants_[thread.tenant];
  if (now_ >= tenant.spec.stops_at) {
    thread.state = State::kOff;
    return;
  }
  draw(thread);
  const gate::TenantGate& gate = gate_of(thread);
  const auto nodes = static_cast<std::uint64_t>(tenant.spec.graph_nodes);
  thread.next.estimate =
      nodes == 1 ? gate.estimate(thread.next.key)
                 : gate.estimate(thread.next.key,
                                 gate::graph_estimate(0, nodes, options_.tenant.unknown_kernel));
  const gate::TenantGate::Verdict said = verdict(thread, thread.next.estimate);
  Nanoseconds after = 0;
  switch (said.answer) {
    case gate::TenantGate::Answer::kGate:
      wait_at_gate(id);
      return;
    case gate::TenantGate::Answer::kLimiter:
      thread.state = State::kInLimiter;
      after = said.wait_ns + host_wake() / 2 + options_.host.timer_call;
      break;
    case gate::TenantGate::Answer::kGo:
      thread.state = State::kSubmitting;
      after = options_.host.launch;
      if (options_.gated && tenant.window.limited) {
        const double events = std::min(1.0, static_cast<double>(thread.next.estimate) /
                                                static_cast<double>(options_.host.event_per));
        after += static_cast<Nanoseconds>(static_cast<double>(options_.host.event) * events);
      }
      if (tenant.waiting_since >= 0) {
        tenant.longest_wait = std::max(tenant.longest_wait, now_ - tenant.waiting_since);
        tenant.waiting_since = -1;
      }
      break;
  }
  gate_of(thread).enter_launch();
  push(now_ + after, What::kThread, id, ++thread.generation);
}

void GateTwin::wait_at_gate(std::size_t id) {
  Tenant& tenant = tenants_[threads_[id].tenant];
  gate::TenantGate& gate = gate_of(threads_[id]);
  threads_[id].state = State::kAtGate;
  gate.wait_at_gate();
  if (tenant.waiting_since < 0) tenant.waiting_since = now_;
  if (gate.report().waiting == 1) notify();
  // A wait is bounded: whatever message is lost, the broker hears of it again.
  push(now_ + options_.tenant.ask_again, What::kThread, id, ++threads_[id].generation);
}

void GateTwin::submit(std::size_t id) {
  Thread& thread = threads_[id];
  Tenant& tenant = tenants_[thread.tenant];
  gate::TenantGate& gate = gate_of(thread);
  gate.leave_launch();
  const TwinTenant& spec = tenant.spec;
  const std::uint32_t all = options_.gpu.multiprocessors;
  const std::uint32_t sms =
      spec.width_eighths >= 8 ? 0 : all * static_cast<std::uint32_t>(spec.width_eighths) / 8;
  engine::Work work = engine::timed_kernel(thread.next.duration * spec.graph_nodes, sms);
  work.notify_end = true;
  work.notify_start = gate.report().in_flight == 0;
  thread.next.measured = gate.wants_duration(now_, tenant.window, thread.next.key);
  if (thread.next.measured) gate.measures(now_);
  thread.next.first_event = thread.in_flight.empty() ? now_ : -1;
  thread.in_flight.push_back(thread.next);
  const bool news = gate.launched(now_, tenant.window, thread.next.key, thread.next.estimate);
  ++tenant.launches;
  thread.next.duration = 0;
  if (thread.burst_left > 0) --thread.burst_left;
  if (spec.wait_probability > 0 && uniform(work_random_) < spec.wait_probability) {
    const engine::StreamId other =
        threads_[static_cast<std::size_t>(work_random_() % threads_.size())].stream;
    engine_.submit(now_, thread.stream, engine::wait_for(other, engine_.submitted(other)));
  }
  engine_.submit(now_, thread.stream, work);
  take_notices();
  if (news) notify();
}

void GateTwin::completed(const engine::Notice& notice) {
  const std::size_t id = thread_of_stream_[notice.stream.slot];
  Thread& thread = threads_[id];
  Tenant& tenant = tenants_[thread.tenant];
  const TwinTenant& spec = tenant.spec;
  gate::TenantGate& gate = gate_of(thread);
  const Launch done = thread.in_flight.front();
  thread.in_flight.pop_front();
  if (!thread.in_flight.empty()) thread.in_flight.front().first_event = now_;
  if (done.measured) gate.measured(done.key, noisy(now_ - done.first_event));
  gate.completed(now_, 1, done.estimate);
  if (thread.state == State::kFull) {
    const std::size_t left = thread.in_flight.size();
    const bool go_on = spec.behaviour == Behaviour::kSaturating
                           ? left < static_cast<std::size_t>(spec.depth)
                           : (thread.burst_left == 0 ? left == 0 : left < kDriverQueue * 9 / 10);
    if (go_on) wake(id, options_.host.sync_wake);
  }
  if (gate.report().in_flight > 0) return;
  for (const std::size_t other : tenant.threads) {
    if (threads_[other].state != State::kInLimiter || &gate_of(threads_[other]) != &gate) continue;
    gate.leave_launch();
    wake(other, options_.host.sync_wake);
  }
  if (!options_.gated) return;
  if (!tenant.window.limited && spec.terms.share_class != gate::ShareClass::kOnline) return;
  push(now_ + options_.host.drain_seen, What::kDrained, id);
  push(now_ + options_.tenant.silence, What::kSilent, id);
}

void GateTwin::check_drained(std::size_t id, bool silent) {
  const Tenant& tenant = tenants_[threads_[id].tenant];
  if (!tenant.present) return;
  const gate::TenantGate& gate = gate_of(threads_[id]);
  const bool news = silent ? gate.silent(now_) : gate.drained(now_, tenant.window);
  if (news) notify();
}

}  // namespace aliquot::replay
