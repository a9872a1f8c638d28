#include "replay/gate_twin_spec.h"

namespace aliquot::replay {

TwinOptions slowed(const TwinOptions& options, double factor) {
  const auto stretch = [factor](Nanoseconds& time) {
    if (time != engine::kNever) {
      time = static_cast<Nanoseconds>(static_cast<double>(time) * factor);
    }
  };
  TwinOptions slow = options;
  stretch(slow.gpu.slice);
  stretch(slow.gpu.switch_busy);
  stretch(slow.gpu.switch_idle);
  stretch(slow.gpu.kernel_start);
  stretch(slow.gpu.sample_period);
  stretch(slow.gpu.sample_lag);
  for (engine::CopyLaneSpec& lane : slow.gpu.copy) {
    stretch(lane.latency);
    lane.bytes_per_ns /= factor;
  }
  slow.gpu.fill_bytes_per_ns /= factor;
  stretch(slow.terms.release);
  slow.arbiter = gate::slowed(options.arbiter, factor);
  slow.tenant = gate::slowed(options.tenant, factor);
  HostModel& host = slow.host;
  for (Nanoseconds* time : {&host.wake_median, &host.tail_mean, &host.launch, &host.event,
                            &host.sync_wake, &host.drain_seen, &host.event_per, &host.timer_call,
                            &host.start_spread, &slow.duration, &slow.warmup, &slow.sample_every}) {
    stretch(*time);
  }
  return slow;
}

TwinTenant slowed(const TwinTenant& tenant, double factor) {
  TwinTenant slow = tenant;
  for (KernelMix::Class& kind : slow.mix.classes) {
    kind.duration_ns = static_cast<Nanoseconds>(static_cast<double>(kind.duration_ns) * factor);
  }
  slow.requests_per_second /= factor;
  for (Nanoseconds* time :
       {&slow.gap, &slow.arrives, &slow.leaves, &slow.resized_at, &slow.stops_at}) {
    if (*time == engine::kNever) continue;
    *time = static_cast<Nanoseconds>(static_cast<double>(*time) * factor);
  }
  return slow;
}

}  // namespace aliquot::replay
