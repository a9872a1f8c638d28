// The grant page: what a lease may use. Written by the broker only, mapped read-only by the tenant.
//
// Every tenant process of a lease maps the same page. Single fields are atomic words, so a value is
// old or new, never torn; a change of several fields ends with a new `generation` (release), and
// who needs a consistent set reads it before and after. The byte layout is docs/formats/grant.md.
// No code here allocates, throws or needs libstdc++ at run time: the interposer includes this
// header. Any thread of any process may read; only the broker's loop writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aliquot::wire {

inline constexpr std::uint64_t kGrantMagic = 0x31544e4152474c41;  // "ALGRANT1" in memory order
inline constexpr std::uint32_t kGrantLayout = 1;
inline constexpr unsigned kMaxGpus = 16;
inline constexpr unsigned kMaxSlots = 1024;  // the ledger's word has 10 bits for a slot
inline constexpr unsigned kDefaultSlots = 1024;

// A byte count that the ledger's word can hold (42 bits); as a limit it means "the whole GPU".
inline constexpr std::uint64_t kByteMask = (1ull << 42) - 1;
inline constexpr std::uint64_t kUnlimitedBytes = kByteMask;

enum class LeaseState : std::uint32_t {
  kLive = 1,
  kEnded = 2,     // its command has ended: no attach any more
  kPoisoned = 3,  // its ledger was truncated: nothing is granted any more
};

// The numbers are cGPU's; burst (a guarantee plus idle time) is ours.
enum class Policy : std::uint32_t {
  kFair = 0,
  kPreemptive = 1,
  kWeighted = 2,
  kFixed = 3,
  kSoft = 4,
  kNative = 5,
  kBurst = 6,
  kBestEffort = 7,  // 1/N of those that work; qGPU's
};

enum class ShareClass : std::uint32_t { kOffline = 0, kOnline = 1 };

enum class Oversubscription : std::uint32_t { kOff = 0, kHost = 1, kPeer = 2, kManaged = 3 };

// Whether limits of memory are kept, or what would have been refused is only counted.
enum class Enforcement : std::uint32_t { kOn = 0, kObserve = 1 };

// One GPU of the lease, in the order the tenant counts them (PCI order from 0).
// Written by the broker; `window` and `gate` by its compute half.
struct alignas(256) GrantGpu {
  std::atomic<std::uint64_t> memory_limit_bytes;      // in force, at most kUnlimitedBytes: no limit
  std::atomic<std::uint64_t> physical_bytes;          // the GPU's total, as the driver says
  std::atomic<std::uint64_t> context_overhead_bytes;  // what one context costs on this model
  std::atomic<std::uint32_t> cores;                   // 1/100 %; 0: no guarantee
  std::atomic<std::uint32_t> policy;                  // Policy
  std::atomic<std::uint32_t> weight;
  std::atomic<std::uint32_t> share_class;  // ShareClass
  std::atomic<std::uint32_t> priority;
  std::atomic<std::uint32_t> oversubscription;  // Oversubscription
  std::atomic<std::uint64_t> time_scale_micro;  // machine ns per real ns, in 1/1,000,000
  std::uint8_t uuid[16];                        // fixed for the life of the lease
  char uuid_text[48];                           // "GPU-...", ends with 0; fixed
  std::atomic<std::uint32_t> capped;            // 1: never more than its share
  std::uint32_t reserved0;
  // The compute gate's own line (docs/formats/grant.md): a launch reads `window` and nothing else.
  std::atomic<std::uint64_t> window;
  std::atomic<std::uint64_t> gate[7];  // [0..2] the window's rest, [3] the broker's last look
  std::uint64_t reserved1[8];
};

struct Grant {
  std::uint64_t magic;       // kGrantMagic
  std::uint32_t layout;      // kGrantLayout
  std::uint32_t size_bytes;  // sizeof(Grant)
  std::atomic<std::uint64_t> generation;
  std::atomic<std::uint32_t> state;        // LeaseState
  std::uint32_t gpu_count;                 // 1..kMaxGpus; fixed for the life of the lease
  std::uint32_t slot_count;                // 1..kMaxSlots; fixed: the ledger is sized by it
  std::atomic<std::uint32_t> enforcement;  // Enforcement
  std::uint64_t lease_id;  // random: tells a lease from a later one of the same name
  char name[64];           // ends with 0
  std::uint64_t reserved1[2];
  char real_libcuda[512];  // absolute paths of the libraries behind the interposer; end with 0
  char real_libnvidia_ml[512];
  std::uint64_t reserved2[16];
  GrantGpu gpu[kMaxGpus];  // the first gpu_count are meant
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint32_t>) == 4);
static_assert(offsetof(GrantGpu, context_overhead_bytes) == 16);
static_assert(offsetof(GrantGpu, cores) == 24 && offsetof(GrantGpu, oversubscription) == 44);
static_assert(offsetof(GrantGpu, time_scale_micro) == 48 && offsetof(GrantGpu, uuid) == 56);
static_assert(offsetof(GrantGpu, uuid_text) == 72 && offsetof(GrantGpu, window) == 128);
static_assert(offsetof(GrantGpu, capped) == 120);
static_assert(sizeof(GrantGpu) == 256);
static_assert(offsetof(Grant, generation) == 16 && offsetof(Grant, gpu_count) == 28);
static_assert(offsetof(Grant, lease_id) == 40 && offsetof(Grant, name) == 48);
static_assert(offsetof(Grant, real_libcuda) == 128 && offsetof(Grant, real_libnvidia_ml) == 640);
static_assert(offsetof(Grant, gpu) == 1280 && sizeof(Grant) == 1280 + 16 * 256);

// Whether a mapped page is a grant this build understands. The page must be at least sizeof(Grant).
inline bool is_valid(const Grant& grant) {
  return grant.magic == kGrantMagic && grant.layout == kGrantLayout &&
         grant.size_bytes == sizeof(Grant) && grant.gpu_count >= 1 && grant.gpu_count <= kMaxGpus &&
         grant.slot_count >= 1 && grant.slot_count <= kMaxSlots;
}

}  // namespace aliquot::wire
