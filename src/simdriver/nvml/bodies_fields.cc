// Field values: many figures by number in one call. Each says for itself whether it is known.

#include <chrono>
#include <numeric>
#include <optional>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/links.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

// What a field says, in the type that programs expect of it.
struct Value {
  nvmlValueType_t type;
  unsigned long long number;
};
Value small(unsigned long long number) { return {NVML_VALUE_TYPE_UNSIGNED_INT, number}; }
Value large(unsigned long long number) { return {NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, number}; }
Value negative(int number) {
  return {NVML_VALUE_TYPE_SIGNED_INT, static_cast<unsigned long long>(number)};
}

using Answer = std::optional<Value>;

Answer ecc_field(const Gpu& gpu, const GpuTelemetry& now, unsigned field) {
  if (!gpu.model().ecc) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING:
      return small(1);
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_SBE_VOL_DEV:
      return large(now.ecc_volatile.corrected);
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_DBE_VOL_DEV:
      return large(now.ecc_volatile.uncorrected);
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_SBE_AGG_DEV:
      return large(now.ecc_aggregate.corrected);
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_DBE_AGG_DEV:
      return large(now.ecc_aggregate.uncorrected);
    default:  // caches, registers, textures: never in error
      return large(0);
  }
}

Answer retired_field(const Gpu& gpu) {
  return gpu.model().ecc && !remaps_rows(gpu.model()) ? Answer(small(0)) : std::nullopt;
}

Answer remapped_field(const Gpu& gpu, const GpuTelemetry& now, unsigned field) {
  if (!remaps_rows(gpu.model())) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_REMAPPED_UNC:
      return small(now.rows_remapped);
    case NVML_FI_DEV_REMAPPED_PENDING:
      return small(stands(now, RowRemap::kPending));
    case NVML_FI_DEV_REMAPPED_FAILURE:
      return small(stands(now, RowRemap::kFailed));
    default:  // for corrected errors: none
      return small(0);
  }
}

Answer power_field(const Gpu& gpu, const GpuTelemetry& now, unsigned field) {
  const Power& power = gpu.model().power;
  const Dynamics dynamics = dynamics_of(gpu.model(), now);
  switch (field) {
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
    case NVML_FI_DEV_ENERGY:
      return large(dynamics.energy_mj);
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
      return small(dynamics.power_mw);
    case NVML_FI_DEV_POWER_MIN_LIMIT:
      return small(power.limit_min_mw);
    case NVML_FI_DEV_POWER_MAX_LIMIT:
      return small(power.limit_max_mw);
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
      return small(power.limit_default_mw);
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
      return small(power_limit_mw(gpu.model(), now));
    default:
      return std::nullopt;
  }
}

// Limits as what is left until them, from Hopper on.
Answer heat_field(const Gpu& gpu, const GpuTelemetry& now, unsigned field) {
  const Temperatures& heat = gpu.model().temperatures;
  const Dynamics dynamics = dynamics_of(gpu.model(), now);
  if (field == NVML_FI_DEV_MEMORY_TEMP)
    return heat.memory_max_c > 0 ? Answer(small(dynamics.memory_temperature_c)) : std::nullopt;
  if (gpu.model().compute_capability.major < 9) return std::nullopt;
  const auto below_slowdown = [&](unsigned limit_c) {
    return negative(static_cast<int>(heat.slowdown_c) - static_cast<int>(limit_c));
  };
  switch (field) {
    case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
      return below_slowdown(heat.shutdown_c);
    case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
      return below_slowdown(heat.slowdown_c);
    case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
      return below_slowdown(heat.gpu_max_c);
    default:
      return std::nullopt;
  }
}

bool between(unsigned field, unsigned first, unsigned last) {
  return field >= first && field <= last;
}

// Counters that exist for each link; `link` is in the field's number or in its scope.
bool is_link_error(unsigned field) {
  return between(field, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0,
                 NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL) ||
         between(field, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
                 NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11) ||
         between(field, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0,
                 NVML_FI_DEV_NVLINK_ERROR_DL_CRC);
}

Answer link_error_field(const GpuTelemetry& now, const nvmlFieldValue_t& asked, unsigned links) {
  const unsigned field = asked.field;
  const auto damaged_on = [&](unsigned link) {
    return link < links ? Answer(large(now.link_errors[link])) : std::nullopt;
  };
  if (between(field, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0,
              NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L5))
    return damaged_on(field - NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0);
  if (between(field, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
              NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L11))
    return damaged_on(6 + field - NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6);
  if (field == NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL)
    return large(std::accumulate(now.link_errors.begin(), now.link_errors.end(), 0ull));
  if (field == NVML_FI_DEV_NVLINK_ERROR_DL_CRC) return damaged_on(asked.scope);
  return large(0);  // replays are counted at the other end; nothing else goes wrong
}

unsigned links_up(const Gpu& gpu, const GpuTelemetry& now) {
  unsigned up = 0;
  for (unsigned link = 0; link < link_count(gpu.machine, gpu.index); ++link)
    if (link_end(gpu.machine, gpu.index, link) && (now.links_down >> link & 1) == 0) up += 1;
  return up;
}

Answer link_field(const Gpu& gpu, const GpuTelemetry& now, const nvmlFieldValue_t& asked) {
  const unsigned links = link_count(gpu.machine, gpu.index);
  const unsigned field = asked.field;
  if (field == NVML_FI_DEV_NVLINK_LINK_COUNT) return small(links);
  if (links == 0) return std::nullopt;
  const unsigned speed = gpu.model().nvlink.link_mb_per_s;
  const auto speed_of = [&](unsigned link) {
    return link < links ? Answer(small(speed)) : Answer();
  };
  if (field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 && field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L5)
    return speed_of(field - NVML_FI_DEV_NVLINK_SPEED_MBPS_L0);
  if (field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 && field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L11)
    return speed_of(6 + field - NVML_FI_DEV_NVLINK_SPEED_MBPS_L6);
  if (is_link_error(field)) return link_error_field(now, asked, links);
  const std::optional<LinkEnd> end = link_end(gpu.machine, gpu.index, asked.scope);
  switch (field) {
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
      return small(speed);
    case NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT:
      return small(gpu.machine.nvswitch ? links_up(gpu, now) : 0);
    case NVML_FI_DEV_NVLINK_GET_SPEED:
      return speed_of(asked.scope);
    case NVML_FI_DEV_NVLINK_GET_STATE:
      return asked.scope < links ? Answer(small(end && (now.links_down >> asked.scope & 1) == 0))
                                 : std::nullopt;
    case NVML_FI_DEV_NVLINK_GET_VERSION:
      return small(nvml_nvlink_version(gpu.model().nvlink.version));
    case NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID:
      return end ? Answer(small(end->link)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

Answer pcie_field(const GpuTelemetry& now, unsigned field) {
  switch (field) {
    case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
      return large(now.received_bytes);
    case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
      return large(now.sent_bytes);
    default:  // replays and errors: none
      return large(0);
  }
}

Answer mig_field(const Gpu& gpu, unsigned field) {
  const bool capable = !gpu.model().mig.empty();
  if (field == NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED)
    return small(capable && gpu.model().compute_capability.major >= 9);
  return small(capable);
}

Answer answer_of(const Gpu& gpu, const GpuTelemetry& now, const nvmlFieldValue_t& asked) {
  const unsigned field = asked.field;
  if (between(field, NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_DBE_AGG_CBU))
    return ecc_field(gpu, now, field);
  if (between(field, NVML_FI_DEV_RETIRED_SBE, NVML_FI_DEV_RETIRED_PENDING))
    return retired_field(gpu);
  if (between(field, NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE))
    return remapped_field(gpu, now, field);
  if (between(field, NVML_FI_DEV_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS))
    return large(0);
  if (field == NVML_FI_DEV_MEMORY_TEMP || between(field, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
                                                  NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT))
    return heat_field(gpu, now, field);
  if (field == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION ||
      between(field, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_REQUESTED_LIMIT))
    return power_field(gpu, now, field);
  if (between(field, NVML_FI_DEV_PCIE_REPLAY_COUNTER, NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER) ||
      between(field, NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS,
              NVML_FI_DEV_PCIE_COUNT_LANE_ERROR) ||
      between(field, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES))
    return pcie_field(now, field);
  if (field == NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED ||
      field == NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE)
    return mig_field(gpu, field);
  if (field == NVML_FI_DEV_C2C_LINK_COUNT && gpu.model().integrated_cpu) return small(10);
  if (field == NVML_FI_DEV_RESET_STATUS || field == NVML_FI_DEV_DRAIN_AND_RESET_STATUS ||
      field == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
    return small(0);
  return link_field(gpu, now, asked);
}

void fill(const Gpu& gpu, const GpuTelemetry& now, nvmlFieldValue_t& value) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  value.timestamp_us = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
  value.latency_us = 0;
  const Answer answer = answer_of(gpu, now, value);
  value.result = answer ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
  if (!answer) return;
  value.type = answer->type;
  value.value.as_ullong = answer->number;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  if (count <= 0 || values == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) {
    for (int i = 0; i < count; ++i) fill(gpu, reading.figures, values[i]);
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
