#include "broker/compute_gpu.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "gate/shared_words.h"

namespace aliquot::broker {
namespace {

// An honest tenant bumps its word some 10 times a window. More than this is a flood: the word is
// then only looked at now and then, so that nobody can keep the broker awake.
constexpr double kWakesPerSecond = 4000;
constexpr double kMostWakes = 400;
constexpr Nanoseconds kMutedLook = 1 * kMillisecond;
// Of the machine's host, whatever the machine's speed (docs/formats/gate_words.md).
constexpr unsigned kLastLook = 3;
constexpr Nanoseconds kSignOfLife = 400 * kMillisecond;

// The low half, which differs after every change.
void wake_waiters(std::atomic<std::uint64_t>& window) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&window), FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
}

}  // namespace

gate::TenantTerms terms_of(const wire::GrantGpu& grant) {
  return {.cores_percent = grant.cores.load() / 100.0,
          .weight = std::max(1u, grant.weight.load()),
          .share_class = grant.share_class == static_cast<std::uint32_t>(wire::ShareClass::kOnline)
                             ? gate::ShareClass::kOnline
                             : gate::ShareClass::kOffline,
          .capped = grant.capped != 0,
          .priority = grant.priority};
}

ComputeGpu::ComputeGpu(const gate::GpuTerms& terms, double slowness)
    : options_(gate::slowed(gate::ArbiterOptions{}, slowness)),
      arbiter_(terms, options_),
      audit_(gate::slowed(gate::AuditOptions{}, slowness)) {}

// Each change begins with a step, so that what was used until now is charged by the old rules.
std::size_t ComputeGpu::add(Nanoseconds now, wire::GrantGpu& grant, wire::LedgerView ledger,
                            unsigned gpu) {
  step(now);
  const std::size_t index = arbiter_.add(now, terms_of(grant));
  if (tenants_.size() <= index) tenants_.resize(index + 1);
  Tenant& tenant = tenants_[index];
  tenant = Tenant{.grant = &grant, .ledger = ledger, .gpu = gpu, .wakes_left = kMostWakes};
  tenant.number_offset = static_cast<std::uint32_t>(grant.window >> 32);
  arbiter_.set_holds_gpu(index, false);
  audit_.forget(index);
  ++count_;
  return index;
}

void ComputeGpu::remove(Nanoseconds now, std::size_t index) {
  step(now);
  arbiter_.remove(now, index);
  tenants_[index] = {};
  --count_;
  step(now);
}

void ComputeGpu::take_slot(Nanoseconds now, std::size_t index, unsigned slot) {
  leave_slot(now, index, slot);
  Tenant& tenant = tenants_[index];
  tenant.processes.push_back({.slot = slot});
  arbiter_.set_holds_gpu(index, true);
  step(now);
}

void ComputeGpu::leave_slot(Nanoseconds now, std::size_t index, unsigned slot) {
  Tenant& tenant = tenants_[index];
  if (std::ranges::find(tenant.processes, slot, &Process::slot) == tenant.processes.end()) return;
  step(now);
  std::erase_if(tenant.processes, [slot](const Process& p) { return p.slot == slot; });
  if (tenant.processes.empty()) arbiter_.set_holds_gpu(index, false);
  step(now);
}

void ComputeGpu::read_terms(Nanoseconds now, std::size_t index) {
  step(now);
  arbiter_.set_terms(now, index, terms_of(*tenants_[index].grant));
  tenants_[index].published = false;
  step(now);
}

void ComputeGpu::ban(Nanoseconds now, std::size_t index, Nanoseconds time) {
  arbiter_.ban(now, index, time);
  tenants_[index].published = false;
  step(now);
}

void ComputeGpu::set_gpu_terms(Nanoseconds now, const gate::GpuTerms& terms) {
  step(now);
  arbiter_.set_gpu_terms(now, terms);
  for (Tenant& tenant : tenants_) tenant.published = false;
  step(now);
}

gate::TenantReport ComputeGpu::report_of(Tenant& tenant, Nanoseconds now) {
  tenant.united.begin(now);
  for (Process& process : tenant.processes) {
    const wire::Cell& cell = tenant.ledger.cell(process.slot, tenant.gpu);
    gate::TenantReport read;
    if (gate::read_report(cell.demand, cell.gate, read)) process.last = read;
    tenant.united.add(process.seen, gate::bounded(process.last, now, options_));
  }
  return tenant.united.end();
}

// Before the reports are read: a bump after this is a change that the waiter will see.
Nanoseconds ComputeGpu::see_demands(Nanoseconds now) {
  demands_.clear();
  Nanoseconds muted = INT64_MAX;
  const double earned = static_cast<double>(now - stepped_at_) / kSecond * kWakesPerSecond;
  for (Tenant& tenant : tenants_) {
    if (tenant.grant == nullptr || tenant.processes.empty()) continue;
    const std::atomic<std::uint32_t>& word = tenant.ledger.gpu(tenant.gpu).demand;
    const std::uint32_t value = word.load(std::memory_order_acquire);
    tenant.wakes_left = std::min(kMostWakes, tenant.wakes_left + earned);
    if (value != tenant.demand_seen) tenant.wakes_left -= 1;
    tenant.demand_seen = value;
    if (tenant.wakes_left > 0) {
      demands_.push_back({&word, value});
    } else {
      muted = now + kMutedLook;
    }
  }
  return muted;
}

Nanoseconds ComputeGpu::step(Nanoseconds now) {
  const Nanoseconds muted = see_demands(now);
  reports_.assign(arbiter_.slots(), {});
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].grant != nullptr) reports_[i] = report_of(tenants_[i], now);
  }
  stepped_at_ = now;
  Nanoseconds next = std::min(muted, arbiter_.step(now, reports_));
  for (const std::size_t i : arbiter_.changed()) publish(i);
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = tenants_[i];
    if (tenant.grant == nullptr) continue;
    if (!tenant.published) publish(i);
    tenant.grant->gate[kLastLook].store(static_cast<std::uint64_t>(now), std::memory_order_release);
    if (!tenant.processes.empty()) next = std::min(next, now + kSignOfLife);
  }
  allowances_.clear();
  for (std::size_t i = 0; i < arbiter_.slots(); ++i)
    allowances_.push_back(arbiter_.account(i).allowed_ns);
  audit_.note(now, allowances_);
  return next;
}

void ComputeGpu::publish(std::size_t index) {
  Tenant& tenant = tenants_[index];
  if (tenant.grant == nullptr) return;
  tenant.published = true;
  gate::Window window = arbiter_.window(index);
  window.number += tenant.number_offset;
  gate::publish(window, tenant.grant->window, tenant.grant->gate);
  if (window.open) wake_waiters(tenant.grant->window);
}

gate::Audit::Finding ComputeGpu::judge(std::size_t index, Nanoseconds end, Nanoseconds period,
                                       double percent) {
  const gate::Audit::Finding found = audit_.sample(index, end, period, percent);
  if (found.excess_ns <= 0) return found;
  const bool offender = tenants_[index].offender || found.offender;
  add_bypass(index, found.excess_ns);
  tenants_[index].offender = offender;
  arbiter_.mark_offender(index, offender);
  return found;
}

void ComputeGpu::add_bypass(std::size_t index, Nanoseconds used) {
  Tenant& tenant = tenants_[index];
  ++tenant.bypasses;
  tenant.bypass_ns += used;
  arbiter_.charge(index, used);
  mark_offender(index);
}

void ComputeGpu::mark_offender(std::size_t index) {
  tenants_[index].offender = true;
  arbiter_.mark_offender(index, true);
}

ComputeGpu::Look ComputeGpu::look(Nanoseconds now, std::size_t tenant) const {
  return {.standing = arbiter_.standing(now, tenant),
          .account = arbiter_.account(tenant),
          .share = arbiter_.share(tenant),
          .lag = arbiter_.lag(tenant),
          .longest_kernel = arbiter_.longest_kernel(tenant),
          .banned_until = arbiter_.banned_until(tenant),
          .bypasses = tenants_[tenant].bypasses,
          .bypass_ns = tenants_[tenant].bypass_ns,
          .offender = tenants_[tenant].offender};
}

}  // namespace aliquot::broker
