#include "simdriver/nvml/unsupported.h"

#include <array>

namespace aliquot::simdriver::nvml {
namespace {

struct Rule {
  std::string_view part;  // of the symbol
  std::string_view reason;
};

// The first rule whose part occurs in the symbol counts.
constexpr auto kRules = std::to_array<Rule>({
    {"Vgpu", "the driver is not a vGPU host, nor a guest"},
    {"vgpu", "the driver is not a vGPU host, nor a guest"},
    {"PgpuMetadata", "the driver is not a vGPU host, nor a guest"},
    {"ConfCompute", "confidential computing is off"},
    {"DramEncryption", "confidential computing is off"},
    {"Nvle", "confidential computing is off"},
    {"GpuInstance", "MIG is off"},
    {"ComputeInstance", "MIG is off"},
    {"MigMode", "changing MIG mode is not simulated"},
    {"DeviceGetAttributes", "MIG is off"},
    {"Gpm", "the model has no hardware counters"},
    {"PRM", "the model has no such registers"},
    {"PerfMetrics", "the model has no hardware counters"},
    {"PowerSmoothing", "a feature of Blackwell that is not simulated"},
    {"WorkloadPowerProfile", "a feature of Blackwell that is not simulated"},
    {"PowerMizer", "a setting of desktop drivers"},
    {"PowerMode", "a setting of notebooks"},
    {"AdaptiveTgp", "a setting of notebooks"},
    {"NvlinkBwMode", "a feature of Blackwell that is not simulated"},
    {"NvlinkSupportedBwModes", "a feature of Blackwell that is not simulated"},
    {"NvlinkBwModes", "a feature of Blackwell that is not simulated"},
    {"PlatformInfo", "a feature of Blackwell that is not simulated"},
    {"RemapTable", "a feature of NVLink switches that is not simulated"},
    {"NvLinkInfo", "a feature of Blackwell that is not simulated"},
    {"NvLinkUtilization", "counters that drivers stopped to offer with Ampere"},
    {"NvLinkTelemetry", "the model has no such counters"},
    {"NvLinkDeviceLowPowerThreshold", "links keep their power state"},
    {"DriverModel", "exists on Windows only"},
    {"BridgeChip", "no board of the presets has a bridge chip"},
    {"GpuOperationMode", "a setting of Kepler"},
    {"AutoBoostedClocks", "a setting of Kepler and Maxwell"},
    {"ApplicationsClocks", "clocks are limited by nvmlDeviceSetGpuLockedClocks"},
    {"MemoryLockedClocks", "the memory clock is fixed"},
    {"VfOffset", "the clocks have no offsets"},
    {"SetClockOffsets", "the clocks have no offsets"},
    {"SetAPIRestriction", "only root changes clocks"},
    {"Cooler", "the model has no coolers beside its fans"},
    {"FanSpeed", "fans follow the temperature"},
    {"FanControlPolicy", "fans follow the temperature"},
    {"TemperatureThreshold", "thresholds are fixed"},
    {"BBX", "there is no black box recorder"},
    {"BankRemapper", "the model does not remap banks"},
    {"RemappedRows", "the model counts rows by the first version's call"},
    {"UnrepairableMemory", "the model's memory does not wear"},
    {"SetEccMode", "ECC stays as it is"},
    {"Accounting", "accounting keeps no history"},
    {"CpuAffinity", "the CPUs of a simulated machine are not this machine's"},
    {"Unit", "there are no S-class units"},
    {"SystemEvent", "the machine's GPUs neither come nor go"},
    {"SystemRegisterEvents", "the machine's GPUs neither come nor go"},
    {"EventSet", "a form of events younger than any simulated driver"},
    {"DrainState", "the machine's GPUs neither come nor go"},
    {"DiscoverGpus", "the machine's GPUs neither come nor go"},
    {"RemoveGpu", "the machine's GPUs neither come nor go"},
    {"VirtualizationMode", "the driver is not a vGPU host, nor a guest"},
    {"ClearFieldValues", "counters are cleared by calls of their own"},
    {"MemoryLimits", "limits of memory are what leases are for"},
    {"Hostname", "a feature younger than any simulated driver"},
    {"GpuUptime", "a feature younger than any simulated driver"},
    {"RusdSettings", "a feature younger than any simulated driver"},
    {"GpuFabricInfo_v4", "a feature younger than any simulated driver"},
    {"CPER", "a feature younger than any simulated driver"},
    {"InternalGetExportTable", "private to NVIDIA's own tools"},
    {"AdaptiveClock", "clocks do not adapt"},
});

}  // namespace

std::string_view why_unsupported(std::string_view symbol) {
  for (const Rule& rule : kRules)
    if (symbol.find(rule.part) != std::string_view::npos) return rule.reason;
  return {};
}

}  // namespace aliquot::simdriver::nvml
