// The fields of every administrators' message, in the order in which they travel (codec.h).
#pragma once

#include "broker/requests.h"
#include "common/result.h"
#include "model/quantity.h"

namespace aliquot::broker {

template <typename Archive>
void fields(Archive& a, ShareRequest& v) {
  a(v.gpu), a(v.memory), a(v.cores);
}
template <typename Archive>
void fields(Archive& a, LeaseRequest& v) {
  a(v.driver), a(v.name), a(v.shares), a(v.wait), a(v.slots), a(v.weight);
  a(v.share_class), a(v.priority), a(v.capped), a(v.oversubscription), a(v.real_libcuda);
  a(v.real_libnvidia_ml), a(v.observe), a(v.cgroup);
}
template <typename Archive>
void fields(Archive& a, GrantedGpu& v) {
  a(v.index), a(v.uuid), a(v.limit_bytes), a(v.cores), a(v.policy);
}
template <typename Archive>
void fields(Archive& a, LeaseGrant& v) {
  a(v.name), a(v.directory), a(v.id), a(v.guarded), a(v.gpus);
}
template <typename Archive>
void fields(Archive& a, ProcessRow& v) {
  a(v.pid), a(v.slot), a(v.held_bytes);
}
template <typename Archive>
void fields(Archive& a, ComputeRow& v) {
  a(v.policy), a(v.weight), a(v.share_class), a(v.priority), a(v.capped), a(v.share), a(v.busy);
  a(v.state), a(v.banned_for_ns), a(v.charged_ns), a(v.forgiven_ns), a(v.windows);
  a(v.unused_grants), a(v.undrained_turns), a(v.false_reports), a(v.longest_kernel_ns);
  a(v.gate_refusals), a(v.bypasses), a(v.bypass_ns), a(v.offender);
}
template <typename Archive>
void fields(Archive& a, UsageRow& v) {
  a(v.index), a(v.uuid), a(v.total_bytes), a(v.limit_bytes), a(v.used_bytes);
  a(v.unaccounted_bytes), a(v.held_back_bytes), a(v.kind_bytes), a(v.cores), a(v.refusals),
      a(v.launches);
  a(v.waiting_ns), a(v.compute);
}
template <typename Archive>
void fields(Archive& a, LeaseRow& v) {
  a(v.name), a(v.driver), a(v.directory), a(v.id), a(v.state), a(v.guarded), a(v.runners);
  a(v.processes), a(v.gpus), a(v.rows), a(v.anomalies), a(v.refused_attaches), a(v.held_off);
  a(v.observed), a(v.would_refuse);
}
template <typename Archive>
void fields(Archive& a, LeasePage& v) {
  a(v.rows), a(v.more);
}
template <typename Archive>
void fields(Archive& a, BypassRow& v) {
  a(v.lease), a(v.pid), a(v.index), a(v.bytes);
}
template <typename Archive>
void fields(Archive& a, NoteRow& v) {
  a(v.kind), a(v.subject), a(v.text);
}
template <typename Archive>
void fields(Archive& a, RoomRow& v) {
  a(v.index), a(v.uuid), a(v.name), a(v.total_bytes), a(v.measured_free_bytes);
  a(v.promised_bytes), a(v.room_bytes), a(v.room_cores), a(v.leases), a(v.policy), a(v.max_inst);
  a(v.trouble);
}
template <typename Archive>
void fields(Archive& a, GpuSettings& v) {
  a(v.driver), a(v.uuid), a(v.index), a(v.policy), a(v.max_inst), a(v.prio_ratio), a(v.release_ns);
  a(v.release_auto), a(v.most_cores), a(v.on_bypass);
}
template <typename Archive>
void fields(Archive& a, GpuChange& v) {
  a(v.driver), a(v.gpu), a(v.policy), a(v.max_inst), a(v.prio_ratio), a(v.most_cores);
  a(v.release_ns), a(v.release_auto), a(v.on_bypass);
}
template <typename Archive>
void fields(Archive& a, ComputeChange& v) {
  a(v.lease), a(v.gpu), a(v.cores), a(v.weight), a(v.priority), a(v.share_class), a(v.capped);
}
template <typename Archive>
void fields(Archive& a, ShareChange& v) {
  a(v.memory), a(v.compute);
}

}  // namespace aliquot::broker

// Found by argument-dependent lookup, hence in the namespaces of their types.
namespace aliquot::model {
template <typename Archive>
void fields(Archive& a, MemoryQuantity& v) {
  a(v.kind), a(v.value);
}
}  // namespace aliquot::model

namespace aliquot {
template <typename Archive>
void fields(Archive& a, Error& v) {
  a(v.code), a(v.message);
}
}  // namespace aliquot
