// The broker's own memory of one lease: the file `table` in the lease's directory.
//
// What a broker must know to take over after the last one was killed at any instruction: which slot
// belongs to which process, which commands the lease lives for, which machine it is on. Written by
// the broker's loop only, by plain stores but for `state`, which is written last (release) when an
// entry is made and when it is emptied. Valid for one boot. Bytes: docs/formats/broker.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "broker/identity.h"
#include "wire/grant.h"

namespace aliquot::broker {

inline constexpr std::uint64_t kTableMagic = 0x31454c4241544c41;  // "ALTABLE1" in memory order
inline constexpr std::uint32_t kTableLayout = 2;
inline constexpr unsigned kMaxRunners = 64;
inline constexpr unsigned kMaxRunNamespaces = 8;

// A process that is remembered.
struct TableEntry {
  std::atomic<std::uint32_t> state;  // 0 free, 1 in use
  std::int32_t pid;
  std::uint64_t inode;
  std::uint64_t start_time;
  std::uint64_t image;        // wire::image_id() of its program
  std::uint64_t start_stack;  // differs after an exec; 0: not known
  std::uint64_t home[2];      // a runner's mount and pid namespace when it was registered

  ProcessIdentity identity() const { return {pid, inode, start_time}; }
  void assign(const ProcessIdentity& who, std::uint64_t its_image, std::uint64_t stack) {
    pid = who.pid;
    inode = who.inode;
    start_time = who.start_time;
    image = its_image;
    start_stack = stack;
    state.store(1, std::memory_order_release);
  }
  bool in_use() const { return state.load(std::memory_order_acquire) == 1; }
  void free() { state.store(0, std::memory_order_release); }
};

// What ended processes of the lease have counted.
struct TableTotals {
  std::uint64_t refusals, launches, waiting_ns;
};

struct Table {
  std::uint64_t magic;
  std::uint32_t layout;
  std::uint32_t slot_count;
  BootId boot;
  std::uint64_t starts, attaches, reattaches, reaps, execs, orphans, anomalies, refused;
  std::uint64_t namespaces[kMaxRunNamespaces];  // mount and pid namespaces the run has made
  char driver[256];
  char cgroup[512];
  std::uint32_t gpu_index[wire::kMaxGpus];  // on the machine, PCI order
  TableTotals totals[wire::kMaxGpus];
  std::uint64_t granted_bytes[wire::kMaxGpus];  // the grant may say less (unaccounted.h)
  std::uint32_t held;                           // 1: lives until it is released, whoever runs in it
  std::uint32_t owner_uid;                      // who besides root may join and change it
  std::uint64_t offender_gpus;  // bit i: work on GPU i of the lease has passed its gate by
  std::uint64_t would_refuse;   // of ended processes, on all GPUs
  std::uint64_t reserved0;
  TableEntry runner[kMaxRunners];
  TableEntry slot[wire::kMaxSlots];  // the first slot_count are meant
};

static_assert(sizeof(TableEntry) == 56 && sizeof(TableTotals) == 24);

}  // namespace aliquot::broker
