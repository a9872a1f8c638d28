// The ledger: what a lease's processes hold, one cell per process slot and GPU.
//
// This header is the layout and the 128-bit words; quota.h is the protocol on them, and the only
// code that may change `head` and `mirror`. Written by the lease's processes and by the broker;
// correctness is promised among those that keep to the protocol, the broker survives those that do
// not. Its geometry (GPUs, slots) is the grant's, never what the ledger itself says. No code here
// allocates, throws or needs libstdc++ at run time. Bytes: docs/formats/ledger.md. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/grant.h"

namespace aliquot::wire {

inline constexpr std::uint64_t kLedgerMagic = 0x31524744454c4c41;  // "ALLEDGR1" in memory order
inline constexpr std::uint32_t kLedgerLayout = 1;

__extension__ typedef unsigned __int128 Word128;

// 16 bytes that are compared and replaced as one. Halves may be read apart: a torn pair can never
// pass the compare.
struct alignas(16) Pair {
  std::uint64_t lo, hi;
  bool operator==(const Pair&) const = default;
};

inline std::uint64_t load(const std::uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

inline Pair load_halves(const Pair& pair) { return {load(pair.lo), load(pair.hi)}; }

// lock cmpxchg16b, a full barrier. __sync is inlined under -mcx16; std::atomic would call
// libatomic.
inline Word128 word_of(Pair pair) { return (static_cast<Word128>(pair.hi) << 64) | pair.lo; }
inline bool compare_and_swap(Pair& pair, Pair expected, Pair desired) {
  return __sync_bool_compare_and_swap(reinterpret_cast<Word128*>(&pair), word_of(expected),
                                      word_of(desired));
}

inline constexpr unsigned kByteBits = 42, kSequenceLowBits = 22, kSlotBits = 10, kSequenceBits = 34;
inline constexpr std::uint64_t kSequenceMask = (1ull << kSequenceBits) - 1;
static_assert(kByteBits + kSequenceLowBits == 64);
static_assert(kByteBits + kSlotBits + (kSequenceBits - kSequenceLowBits) == 64);
static_assert(kMaxSlots == 1u << kSlotBits && kByteMask == (1ull << kByteBits) - 1);

// The head word of a GPU: "operation `sequence` made the total `used` and the bytes of `slot`
// `after`". In memory {used 42 | sequence 22} {after 42 | slot 10 | sequence 12}.
struct Head {
  std::uint64_t used, after, slot, sequence;

  static Head unpack(Pair pair) {
    return {pair.lo & kByteMask, pair.hi & kByteMask, (pair.hi >> kByteBits) & (kMaxSlots - 1),
            (pair.lo >> kByteBits) | ((pair.hi >> (kByteBits + kSlotBits)) << kSequenceLowBits)};
  }
  Pair pack() const {
    const std::uint64_t s = sequence & kSequenceMask;
    return {used | (s << kByteBits),
            after | (slot << kByteBits) | ((s >> kSequenceLowBits) << (kByteBits + kSlotBits))};
  }
};

enum class Kind : unsigned { kLinear, kPool, kVmm, kArray, kGraph, kModule, kContext };
inline constexpr unsigned kKinds = 7;

// One process on one GPU. Written by the slot's process; emptied by the broker.
struct alignas(64) Cell {
  Pair mirror;  // {bytes 64} {count 30 | sequence 34}; quota.h only
  std::uint64_t reserved0[6];
  // Relaxed counters, exact while the process is quiet; that of linear memory is not used
  // (quota.h).
  std::atomic<std::uint64_t> kind_bytes[kKinds];
  std::atomic<std::uint64_t> refusals;    // reserves that ended in "out of memory"
  std::atomic<std::uint64_t> launches;    // kernel and graph launches
  std::atomic<std::uint64_t> waiting_ns;  // time its threads stood at the compute gate
  // Who it is, to be shown and never relied on. Written by the broker at attach, 0 in a free slot.
  std::atomic<std::uint32_t> broker_pid;     // as the broker and the driver count: the host's
  std::atomic<std::uint32_t> own_pid;        // in the pid namespace of the process
  std::atomic<std::uint64_t> pid_namespace;  // inode of that namespace
  std::atomic<std::uint64_t> would_refuse;   // refusals not made: the lease is observed only
  std::uint64_t reserved1[3];
  // The compute gate's words of this process; docs/formats/ledger.md.
  std::atomic<std::uint32_t> demand;  // count of changes of gate[]; odd while they are written
  std::atomic<std::uint32_t> gate_refusals;  // work refused: the gate was broken
  std::atomic<std::uint64_t> gate[7];        // its report
};

// One GPU: the head, and the lease's gate words (written by tenants; the broker waits on demand).
struct alignas(128) GpuLine {
  Pair head;  // quota.h only
  std::uint64_t reserved0[14];
  std::atomic<std::uint32_t> demand;   // futex: bumped when the broker is to look
  std::atomic<std::uint32_t> drained;  // unused
  std::atomic<std::uint64_t> gate[7];  // of the lease's processes among themselves
  std::uint64_t reserved1[8];
};

// Written once by the broker; a reader takes the geometry from the grant and only compares.
struct alignas(128) LedgerHeader {
  std::uint64_t magic;
  std::uint32_t layout;
  std::uint32_t gpu_count;
  std::uint32_t slot_count;
  std::uint32_t reserved0;
  std::uint64_t lease_id;
  std::uint64_t reserved1[12];
};

static_assert(sizeof(LedgerHeader) == 128);
static_assert(sizeof(GpuLine) == 256 && offsetof(GpuLine, demand) == 128);
static_assert(sizeof(Cell) == 256 && offsetof(Cell, kind_bytes) == 64);
static_assert(offsetof(Cell, refusals) == 120 && offsetof(Cell, broker_pid) == 144 &&
              offsetof(Cell, would_refuse) == 160 && offsetof(Cell, demand) == 192);

// A mapped ledger with its geometry. A value; the mapping must outlive it.
class LedgerView {
 public:
  static constexpr std::size_t size_bytes(unsigned gpus, unsigned slots) {
    return sizeof(LedgerHeader) + gpus * sizeof(GpuLine) +
           static_cast<std::size_t>(gpus) * slots * sizeof(Cell);
  }

  LedgerView() = default;
  // `base` has at least size_bytes(gpus, slots) bytes; both counts are within the grant's limits.
  LedgerView(void* base, unsigned gpus, unsigned slots)
      : base_(static_cast<char*>(base)), gpus_(gpus), slots_(slots) {}

  explicit operator bool() const { return base_ != nullptr; }
  unsigned gpus() const { return gpus_; }
  unsigned slots() const { return slots_; }
  LedgerHeader& header() const { return *reinterpret_cast<LedgerHeader*>(base_); }
  GpuLine& gpu(unsigned gpu) const {
    return reinterpret_cast<GpuLine*>(base_ + sizeof(LedgerHeader))[gpu];
  }
  Cell& cell(unsigned slot, unsigned gpu) const {
    auto* cells = reinterpret_cast<Cell*>(base_ + sizeof(LedgerHeader) + gpus_ * sizeof(GpuLine));
    return cells[static_cast<std::size_t>(slot) * gpus_ + gpu];
  }

 private:
  char* base_ = nullptr;
  unsigned gpus_ = 0;
  unsigned slots_ = 0;
};

}  // namespace aliquot::wire
