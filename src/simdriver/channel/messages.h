// The control messages between a client library (libcuda, libnvidia-ml) and the device server:
// one SEQPACKET datagram a request, one an answer, one outstanding request per connection. Bytes:
// docs/formats/simulated_channel.md. What travels by shared memory instead is in ring.h.
//
// Plain structures of fixed width; both ends run on one machine, so the byte order is its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace aliquot::simdriver {

inline constexpr std::uint32_t kChannelVersion = 8;
inline constexpr std::size_t kMaxMessageBytes = 16384;
inline constexpr std::size_t kMaxMessageFds = 4;
inline constexpr std::uint64_t kGranuleBytes = 2u << 20;
// Where a process's device addresses come from: offsets into its arena file.
inline constexpr std::uint64_t kArenaBytes = 1ull << 44;

// The high byte is the subject; each subject has one handler file in server/.
enum class Op : std::uint32_t {
  kHello = 0x0100,           // HelloRequest -> HelloReply + arena, doorbell, machine page
  kDeviceInfo = 0x0101,      // DeviceRequest -> DeviceInfo
  kKernelTime = 0x0102,      // a kernel's name, as long as the payload -> KernelTime
  kContextCreate = 0x0200,   // ContextRequest -> ContextReply + client page, server page
  kContextDestroy = 0x0201,  // ContextId
  kMemoryTake = 0x0300,      // MemoryRequest -> MemoryRequest, bytes as charged
  kMemoryGive = 0x0301,      // MemoryRequest
  kMemoryInfo = 0x0302,      // DeviceRequest -> MemoryInfo
  kCommit = 0x0303,          // CommitRequest: may this much more be backed by the host's memory?
  kBlockCreate = 0x0310,     // MemoryRequest -> BlockReply + its file
  kBlockConvert = 0x0315,    // MemoryRequest -> BlockReply + its file: held bytes become a block
  kBlockAddHold = 0x0311,    // BlockId
  kBlockRelease = 0x0312,    // BlockId
  kBlockOpenKey = 0x0313,    // BlockKey -> BlockReply + its file
  kBlockOpenFd = 0x0314,     // what kBlockExport gave -> BlockReply + its file
  kBlockExport = 0x0316,     // BlockId -> a descriptor that holds the block while a copy is open
  kMark = 0x0400,            // MarkRequest -> MarkReply
  kTelemetry = 0x0500,       // 0x05xx: libnvidia-ml's requests, see telemetry.h
  kFailNth = 0x0600,         // FailNth: let a later call of a symbol fail
  kClearFaults = 0x0601,
  kShutdown = 0x0602,
  kLookups = 0x0603,  // LookupMode: how the driver finds its own functions
};

struct RequestHeader {
  Op op;
  std::uint32_t payload_bytes;
};

// `result` is a CUresult (a nvmlReturn_t under subject 0x05).
struct ReplyHeader {
  std::int32_t result;
  std::uint32_t payload_bytes;
  std::uint64_t cost_ns;  // what the driver's call that asked costs its caller, of machine time
};

struct HelloRequest {
  std::uint32_t version;
};

struct HelloReply {
  std::uint32_t version;
  std::uint32_t device_count;
  std::int32_t cuda_version;       // 13000
  std::uint32_t time_scale_micro;  // machine time per host time, in millionths
  std::uint32_t timed_kernels;     // whose time the machine was told; 0: nothing to ask for
  std::uint32_t reserved;
  std::uint64_t session;
};

struct KernelTime {
  std::uint64_t block_ns;  // 0: not told
};

// A GPU by its index, or a MIG compute instance by the number that telemetry gives it (MigPart).
struct DeviceRequest {
  std::uint32_t device;
};

inline constexpr std::size_t kDeviceAttributes = 160;

struct DeviceInfo {
  std::array<char, 96> name;
  std::array<std::uint8_t, 16> uuid;      // of an instance its own
  std::array<std::uint8_t, 16> gpu_uuid;  // of the GPU that it is or lies in
  std::uint32_t pci_domain;
  std::uint32_t pci_bus;
  std::uint32_t pci_device;
  std::uint32_t compute_mode;
  std::uint64_t total_bytes;  // as cuDeviceTotalMem says
  std::uint64_t peers;        // bit i: peer access to device i is possible
  std::uint64_t nvlink_peers;
  std::uint32_t host_to_device_mib_s;
  std::uint32_t device_to_host_mib_s;
  // What launches cost their caller, of machine time.
  std::uint32_t launch_ns;
  std::uint32_t graph_launch_ns;
  std::uint32_t graph_node_ns;
  std::uint32_t mig;  // 1: a GPU that is cut into instances; itself it takes no context
  // Indexed by CUdevice_attribute; kAbsentAttribute: the device does not have it.
  std::array<std::int32_t, kDeviceAttributes> attributes;
};

inline constexpr std::int32_t kAbsentAttribute = -0x7fffffff;

struct ContextRequest {
  std::uint32_t device;
  std::uint32_t flags;
  std::uint32_t active_thread_percent;  // 1 to 100: of an MPS client its ceiling, else ignored
};

struct ContextReply {
  std::uint64_t context;
};

struct ContextId {
  std::uint64_t context;
};

enum class MemoryKind : std::uint32_t {
  kContext,
  kLinear,
  kManaged,
  kPool,
  kVmm,
  kArray,
  kModule,
  kGraph,
  kCount,
  kCell,  // of blocks only: a page that costs no device memory (interprocess events)
};

struct MemoryRequest {
  std::uint32_t device;
  MemoryKind kind;
  std::uint64_t bytes;
};

struct MemoryInfo {
  std::uint64_t free_bytes;
  std::uint64_t total_bytes;
};

struct CommitRequest {
  std::int64_t bytes;  // negative: given back
};

struct BlockId {
  std::uint64_t block;
};

// Whoever knows the key may open the block: what an IPC handle carries.
struct BlockKey {
  std::uint64_t block;
  std::array<std::uint8_t, 16> key;
};

struct BlockReply {
  BlockKey key;
  std::uint64_t bytes;
  std::uint32_t device;
  MemoryKind kind;
};

// When did command `seq` of a stream, which marked `event`, end?
struct MarkRequest {
  std::uint64_t context;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint64_t seq;
};

struct MarkReply {
  std::int64_t ended_ns;  // in the machine's time; -1: not yet
};

// 1: through the process's dlsym, as the driver of WSL does; 0: in its own table.
struct LookupMode {
  std::uint32_t through_dlsym;
};

struct FailNth {
  std::array<char, 64> symbol;
  std::uint32_t nth;  // 1: the next call
  std::int32_t result;
};

}  // namespace aliquot::simdriver
