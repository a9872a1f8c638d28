// What libnvidia-ml asks the device server, and the answers: subject 0x05 of the channel
// (channel/messages.h; bytes: docs/formats/simulated_telemetry.md). The reply's result is a
// nvmlReturn_t.
//
// Only what changes travels here; what a GPU is made of stands in machine.json beside the library.
// Plain structures of fixed width. Names in _ns are the machine's time since its start, names in
// _us are microseconds since 1970 as programs read the clock. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace aliquot::simdriver {

enum class TelemetryOp : std::uint32_t {
  kGpu = 0x0500,        // TelemetryRequest -> GpuTelemetry, then process_count ProcessTelemetry
  kSamples = 0x0501,    // SamplesRequest -> SamplesReply, then count Samples
  kEvents = 0x0502,     // EventsRequest -> EventsReply, then count GpuEvents
  kSet = 0x0503,        // SetRequest: what administrators may change through NVML
  kFault = 0x0504,      // FaultRequest: `aliquot sim fault`
  kMig = 0x0505,        // TelemetryRequest -> MigReply, then count MigPart
  kMigChange = 0x0506,  // MigChange -> MigChanged
  kSwitches = 0x0507,   // TelemetryRequest -> SwitchesReply, then count SwitchTelemetry
};

struct TelemetryRequest {
  std::uint32_t gpu;
};

// Counts of one scope: since the driver was loaded, or ever.
struct EccCounts {
  std::uint64_t corrected;
  std::uint64_t uncorrected;
};

// Of one GPU: links_down has a bit for each.
inline constexpr std::size_t kMostNvlinks = 32;

// What may stand against the remapping of rows; bits of GpuTelemetry::row_remap.
enum class RowRemap : std::uint32_t {
  kPending = 1,  // a row is replaced at the next reset
  kFailed = 2,   // a row had to be replaced, and its bank had no spare one left
};

struct GpuTelemetry {
  std::int64_t now_ns;       // since the machine was started
  std::int64_t busy_ns;      // of them, a kernel ran
  std::uint64_t used_bytes;  // of what programs can take
  std::uint64_t sent_bytes;  // host to device over PCIe, since the start
  std::uint64_t received_bytes;
  EccCounts ecc_volatile;
  EccCounts ecc_aggregate;
  std::array<std::uint64_t, kMostNvlinks> link_errors;  // flits that arrived damaged, by NVLink
  std::uint32_t gpu_percent;                            // of the newest sample that can be seen
  std::uint32_t memory_percent;
  std::uint32_t power_limit_mw;   // 0: the model's default
  std::uint32_t clock_limit_mhz;  // 0: the model's maximum
  std::uint32_t compute_mode;
  std::uint32_t persistence;
  std::uint32_t accounting;
  std::uint32_t lost;           // the GPU has fallen off the bus
  std::uint32_t links_down;     // bit per NVLink
  std::uint32_t hang_ms;        // libnvidia-ml is to answer this much later
  std::uint32_t process_count;  // that follow; at most kMostProcessesTold
  std::uint32_t heat_c;         // the chip is so hot whatever it does; 0: as its use makes it
  std::uint32_t rows_remapped;  // all for uncorrected errors
  std::uint32_t row_remap;      // bits of RowRemap
};

inline bool stands(const GpuTelemetry& now, RowRemap what) {
  return (now.row_remap & static_cast<std::uint32_t>(what)) != 0;
}

// So that an answer is one datagram of the channel.
inline constexpr std::uint32_t kMostProcessesTold = 512;

enum class ProcessUse : std::uint32_t { kCompute, kGraphics, kMps };

struct ProcessTelemetry {
  std::int32_t pid;
  ProcessUse use;
  std::uint64_t used_bytes;
  std::int64_t busy_ns;  // of contexts that it still has: a kernel of theirs ran
};

struct SwitchesReply {
  std::uint32_t count;  // at most kMostSwitchesTold
  std::uint32_t reserved;
};

inline constexpr std::uint32_t kMostSwitchesTold = 1024;

// What the switches from one process to another have cost, of processes that have contexts.
struct SwitchTelemetry {
  std::int32_t from_pid;
  std::int32_t to_pid;
  std::int64_t cost_ns;
};

enum class SampleKind : std::uint32_t { kGpu, kMemory, kProcesses };

struct SamplesRequest {
  std::uint32_t gpu;
  SampleKind kind;
  std::int64_t since_us;  // only younger ones
};

struct SamplesReply {
  std::uint32_t count;
  std::uint32_t reserved;
};

inline constexpr std::uint32_t kMostSamplesTold = 512;

struct Sample {
  std::int64_t at_us;
  std::int32_t pid;  // 0 unless kProcesses
  std::uint32_t percent;
};

struct EventsRequest {
  std::uint64_t after;  // serial of the last event seen
};

enum class GpuEventKind : std::uint32_t { kXid, kSingleBitEcc, kDoubleBitEcc };

struct GpuEvent {
  std::uint64_t serial;  // from 1, over all GPUs
  std::uint32_t gpu;
  GpuEventKind kind;
  std::uint64_t data;  // an XID's number
};

struct EventsReply {
  std::uint64_t newest;  // serial of the newest event there is
  std::uint32_t count;
  std::uint32_t reserved;
};

enum class Setting : std::uint32_t {
  kPowerLimitMw,
  kClockLimitMhz,
  kComputeMode,
  kPersistence,
  kAccounting,
  kClearEcc,         // value 0: volatile, 1: aggregate
  kClearLinkErrors,  // value: the NVLink
};

struct SetRequest {
  std::uint32_t gpu;
  Setting setting;
  std::uint64_t value;
};

enum class FaultKind : std::uint32_t {
  kXid,         // value: its number; contexts of the GPU are lost where that XID does so
  kGpuLost,     // falls off the bus; lifted by kNone
  kEccSingle,   // value: how many
  kEccDouble,   // value: how many
  kLinkDown,    // value: bit per NVLink; 0 lifts it
  kNvmlHang,    // value: milliseconds that NVML is late about the GPU; 0 lifts it
  kNone,        // lifts all
  kHeat,        // value: degrees Celsius of the chip, whatever it does; 0 lifts it
  kRowRemap,    // value: a RowRemap, one more beside those that stand
  kLinkErrors,  // value: errors_of_link(): so many more
};

// What a kLinkErrors says: the link in the upper half, how many in the lower.
constexpr std::uint64_t errors_of_link(std::uint32_t link, std::uint32_t count) {
  return std::uint64_t{link} << 32 | count;
}

struct FaultRequest {
  std::uint32_t gpu;
  FaultKind kind;
  std::uint64_t value;
};

struct MigReply {
  std::uint32_t on;
  std::uint32_t count;
};

inline constexpr std::uint32_t kNoComputeInstance = 0xffffffff;

// A GPU instance, or a compute instance in one.
struct MigPart {
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;  // kNoComputeInstance: this is the GPU instance itself
  std::uint32_t profile;           // of a GPU instance; slices of a compute instance
  std::uint32_t start;
  std::uint32_t size;
  std::uint32_t device;  // of a compute instance: by this number it is a device of the server
};
inline constexpr std::uint32_t kNoDevice = 0xffffffff;

enum class MigAction : std::uint32_t {
  kSwitchMode,      // first: 1 on, 0 off
  kCreate,          // first: profile; second: start, or kAnywhere
  kDestroy,         // first: GPU instance
  kCreateCompute,   // first: GPU instance; second: slices
  kDestroyCompute,  // first: GPU instance; second: compute instance
};

inline constexpr std::uint32_t kAnywhere = 0xffffffff;

struct MigChange {
  std::uint32_t gpu;
  MigAction action;
  std::uint32_t first;
  std::uint32_t second;
};

struct MigChanged {
  std::uint32_t id;  // of what was created
  std::uint32_t reserved;
};

}  // namespace aliquot::simdriver
