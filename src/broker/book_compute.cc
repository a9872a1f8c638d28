// Compute shares: what a lease and a GPU are promised of time, and how it is changed.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>

#include "broker/book.h"

namespace aliquot::broker {
namespace {

gate::TenantTerms terms_with(gate::TenantTerms terms, const ComputeChange& change) {
  if (change.cores) terms.cores_percent = *change.cores / 100.0;
  if (change.weight) terms.weight = *change.weight;
  if (change.priority) terms.priority = *change.priority;
  if (change.share_class)
    terms.share_class = *change.share_class == wire::ShareClass::kOnline
                            ? gate::ShareClass::kOnline
                            : gate::ShareClass::kOffline;
  if (change.capped) terms.capped = *change.capped;
  return terms;
}

std::uint32_t cores_of(const gate::TenantTerms& terms) {
  return static_cast<std::uint32_t>(std::lround(terms.cores_percent * 100));
}

void store(wire::GrantGpu& grant, const gate::TenantTerms& terms) {
  grant.cores = cores_of(terms);
  grant.weight = terms.weight;
  grant.priority = terms.priority;
  grant.share_class = static_cast<std::uint32_t>(terms.share_class == gate::ShareClass::kOnline
                                                     ? wire::ShareClass::kOnline
                                                     : wire::ShareClass::kOffline);
  grant.capped = terms.capped ? 1 : 0;
}

}  // namespace

std::uint32_t Book::promised_cores(const std::string& driver, const GpuSettings& settings,
                                   const Lease* except) const {
  std::uint32_t promised = 0;
  for (const auto& [name, entry] : leases_) {
    const Lease& lease = *entry.lease;
    if (lease.driver() != driver || &lease == except) continue;
    for (unsigned i = 0; i < lease.gpus(); ++i)
      if (lease.uuid(i) == settings.uuid) promised += guaranteed_cores(lease, i, settings);
  }
  return promised;
}

std::uint32_t Book::guaranteed_cores(const Lease& lease, unsigned gpu,
                                     const GpuSettings& settings) const {
  return broker::guaranteed_cores(settings, lease.cores(gpu),
                                  lease.files().grant().gpu[gpu].weight);
}

Status Book::check_compute(const Lease& lease, unsigned gpu, const gate::TenantTerms& terms) const {
  const GpuSettings settings = compute_.settings(lease.driver(), lease.uuid(gpu));
  if (const Status good = gate::check(terms, terms_of(settings)); !good) return good;
  const std::uint32_t wanted = broker::guaranteed_cores(settings, cores_of(terms), terms.weight);
  const std::uint32_t others = promised_cores(lease.driver(), settings, &lease);
  if (wanted <= guaranteed_cores(lease, gpu, settings) || others + wanted <= settings.most_cores)
    return {};
  const std::uint32_t left = settings.most_cores > others ? settings.most_cores - others : 0;
  return Error{Errc::kExhausted,
               "set the cores on gpu " + std::to_string(lease.gpu_index(gpu)) + " to " +
                   model::cores_text(wanted) + ": " + model::cores_text(others) +
                   " are promised to others, " + model::cores_text(left) +
                   " are free; ask for less, or allow more in all: aliquot gpu set " +
                   std::to_string(lease.gpu_index(gpu)) + " --overcommit"};
}

Status Book::check_terms(const LeaseRequest& request, const std::vector<LeaseGpu>& gpus) const {
  for (const LeaseGpu& gpu : gpus) {
    ComputeChange asked;
    asked.cores = gpu.cores;
    asked.weight = request.weight;
    asked.share_class = request.share_class;
    asked.capped = request.capped;
    const GpuSettings settings = compute_.settings(request.driver, gpu.uuid);
    if (const Status good = gate::check(terms_with({}, asked), terms_of(settings)); !good)
      return good;
  }
  return {};
}

Result<gate::TenantTerms> Book::changed_terms(const Lease& lease, unsigned gpu,
                                              const ComputeChange& change) const {
  const auto terms = terms_with(terms_of(lease.files().grant().gpu[gpu]), change);
  if (const Status good = check_compute(lease, gpu, terms); !good) return good.error();
  return terms;
}

void Book::set_terms(Lease& lease, unsigned gpu, const gate::TenantTerms& terms) {
  store(lease.files().grant().gpu[gpu], terms);
  lease.files().grant().generation.fetch_add(1, std::memory_order_release);
  compute_.read_terms(lease, gpu);
}

Result<std::vector<GpuSettings>> Book::gpu_settings(const std::string& driver) {
  const auto gpus = probe(driver);
  if (!gpus) return gpus.error();
  std::vector<GpuSettings> rows;
  for (const ProbedGpu& gpu : *gpus) {
    rows.push_back(compute_.settings(driver, gpu.uuid));
    rows.back().index = static_cast<std::uint32_t>(rows.size() - 1);
  }
  return rows;
}

Status Book::set_gpu(const GpuChange& change) {
  auto rows = gpu_settings(change.driver);
  if (!rows) return rows.error();
  const auto row = std::ranges::find_if(*rows, [&](const GpuSettings& gpu) {
    return gpu.uuid == change.gpu || std::to_string(gpu.index) == change.gpu;
  });
  if (row == rows->end())
    return Error{Errc::kNotFound, "set gpu " + change.gpu + ": this machine has " +
                                      (rows->empty() ? std::string("none")
                                                     : "0.." + std::to_string(rows->size() - 1))};
  if (change.policy) row->policy = *change.policy;
  if (change.max_inst) row->max_inst = *change.max_inst;
  if (change.prio_ratio) row->prio_ratio = *change.prio_ratio;
  if (change.most_cores) row->most_cores = *change.most_cores;
  if (change.release_ns) row->release_ns = *change.release_ns;
  if (change.release_auto) row->release_auto = *change.release_auto;
  if (change.on_bypass) row->on_bypass = *change.on_bypass;
  const std::uint32_t promised = promised_cores(change.driver, *row, nullptr);
  if (promised > row->most_cores)
    return Error{Errc::kExhausted, "set gpu " + change.gpu + ": its leases were promised " +
                                       model::cores_text(promised) + " in all under that, " +
                                       model::cores_text(row->most_cores) +
                                       " may be; change their shares first (aliquot share set), or "
                                       "give --overcommit"};
  const Status set = compute_.set(*row);
  if (set) ++changes_;
  return set;
}

// Once a quarter of a second, of the GPUs that are in use. A driver that does not answer is asked
// again the next time.
void Book::audit_compute() {
  for (const Compute::Question& question : compute_.questions()) {
    if (!open_probes_.contains(question.driver) && !probe(question.driver)) continue;
    const auto uses = open_probes_[question.driver].probe->use(question.gpu, question.after_us);
    if (!uses) continue;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const auto now_us = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
                        static_cast<std::uint64_t>(now.tv_nsec) / 1000;
    for (const Compute::Offence& offence : compute_.judge(question, *uses, now_us))
      answer_offence(offence, *uses);
  }
}

void Book::answer_offence(const Compute::Offence& offence, const std::vector<ProbedUse>& uses) {
  Lease& lease = *leases_.at(offence.lease->name()).lease;
  const std::string what = "lease " + lease.name() + ": work on GPU " +
                           std::to_string(lease.gpu_index(offence.gpu)) +
                           " does not come through its gate";
  if (offence.first) options_.log.warning(what);
  if (offence.action != OnBypass::kStop && offence.action != OnBypass::kEnd) return;
  const bool end = offence.action == OnBypass::kEnd;
  options_.log.warning(what +
                       (end ? "; ended, as set for the GPU" : "; stopped, as set for the GPU"));
  if (end) lease.end(wire::LeaseState::kEnded);
  lease.send_signal(end ? SIGKILL : SIGSTOP);
  std::vector<std::int32_t> pids;
  for (const ProbedUse& use : uses) pids.push_back(use.pid);
  for (const std::int32_t pid : lease.strangers_of_run(pids)) kill(pid, end ? SIGKILL : SIGSTOP);
}

}  // namespace aliquot::broker
