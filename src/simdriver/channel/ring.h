// The pages that a context's client and the device server share: a ring of commands that the
// client writes, and the server's answers. One writer a page (style 19). The server copies a
// command once, then checks it; nothing a client writes here can hurt more than its own context.
//
// Client side: under the library's own lock. Server side: its loop only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aliquot::simdriver {

inline constexpr std::uint32_t kRingSlots = 4096;
inline constexpr std::uint32_t kWaiterSlots = 64;
inline constexpr std::uint32_t kStreamSlots = 8192;

enum class CommandOp : std::uint16_t {
  kLaunch = 1,      // a: blocks, threads a block, registers a thread | shared bytes << 32, block ns
  kCopy = 2,        // a: bytes, CopyKind
  kFill = 3,        // a: bytes
  kWait = 4,        // a: context, stream, seq: go on when that command has ended
  kMark = 5,        // a: event number; its time of ending is remembered under it
  kHold = 6,        // ends when the client says so (host functions, memory waits)
  kLetGo = 7,       // not a stream's command; a: seq of the kHold of this stream
  kOpenStream = 8,  // not a stream's command; a: priority, last seq used in its slot
  kCloseStream = 9,  // not a stream's command
};

enum class CopyKind : std::uint64_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer, kHost };

// 64 bytes: one cache line.
struct Command {
  std::int64_t submitted_ns;  // CLOCK_MONOTONIC of the client
  CommandOp op;
  std::uint16_t reserved;
  std::uint32_t stream;
  std::uint64_t seq;  // counts a stream's commands from 1; 0 for those that are none
  std::array<std::uint64_t, 5> a;
};
static_assert(sizeof(Command) == 64);

// A thread that waits for a command. stream_plus_1 == 0: a free slot.
struct Waiter {
  std::atomic<std::uint32_t> stream_plus_1;
  std::atomic<std::uint32_t> takes_promise;  // 1: it can sleep to a promised moment by itself
  std::atomic<std::uint64_t> seq;
};

// Beside each waiter slot: the command at `place` has ended when the host's clock says until_ns,
// provided that then this still stands here and the client has published no command beyond `tail`.
struct Promise {
  std::atomic<std::uint64_t> place;  // 0: none; written last, taken back first
  std::atomic<std::int64_t> until_ns;
  std::atomic<std::uint32_t> tail;
  std::uint32_t reserved;
};
inline constexpr std::uint64_t place_in(std::uint32_t stream, std::uint64_t seq) {
  return (std::uint64_t{stream} + 1) << 48 ^ seq;
}

// Written by the client.
struct ClientPage {
  alignas(64) std::atomic<std::uint32_t> tail;  // commands ever published, modulo 2^32
  alignas(64) std::array<Waiter, kWaiterSlots> waiters;
  alignas(64) std::array<Command, kRingSlots> ring;
};

// Written by the server, read-only to the client (the file is sealed against other writers).
struct ServerPage {
  alignas(64) std::atomic<std::uint32_t> head;     // commands ever taken
  std::atomic<std::uint32_t> wake_at;              // ring the bell when tail gets here
  alignas(64) std::atomic<std::uint32_t> changes;  // futex: something below changed
  std::atomic<std::uint32_t> lost;                 // the CUresult that ended this context, or 0
  alignas(64) std::array<Promise, kWaiterSlots> promises;
  alignas(64) std::array<std::atomic<std::uint64_t>, kStreamSlots> done;  // seq of the last ended
};

inline constexpr std::size_t kMaxFailures = 32;

// One for the whole machine, written by the server: what every client obeys.
struct MachinePage {
  std::atomic<std::uint32_t> generation;     // of `failures`; odd while they are being changed
  std::atomic<std::uint32_t> through_dlsym;  // LookupMode
  struct Failure {
    std::array<char, 64> symbol;
    std::uint32_t nth;
    std::int32_t result;
  };
  std::array<Failure, kMaxFailures> failures;
};

}  // namespace aliquot::simdriver
