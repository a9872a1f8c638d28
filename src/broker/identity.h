// Who a process is, for longer than its number lasts.
//
// Two ways, both of which hold across a restart of the broker: the pidfs inode (Linux 6.9; equal
// for every pidfd of a process, never used twice), and pid + start time read while holding a pidfd.
// The second cannot tell a connection's peer from a later process of the same pid by itself: the
// peer must then answer a challenge after its pidfd was opened (a dead peer reads as end of file).
// Functions; any thread. Facts and measurements: docs/adr/0011.
#pragma once

#include <compare>
#include <cstdint>

#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::broker {

enum class IdentityPath {
  kAuto,         // pidfs where the kernel has it
  kPidfs,        // SO_PEERPIDFD, inode of the pidfd
  kCredentials,  // SO_PEERCRED, pidfd_open, challenge, start time
};

// kPidfs or kCredentials, as this kernel allows.
IdentityPath best_identity_path();

struct ProcessIdentity {
  std::int32_t pid = 0;          // in the broker's pid namespace
  std::uint64_t inode = 0;       // of the pidfd; 0 on the credentials path
  std::uint64_t start_time = 0;  // clock ticks since boot
  auto operator<=>(const ProcessIdentity&) const = default;
};

struct ProcessStat {
  std::int32_t parent = 0;
  std::uint64_t start_time = 0;
  std::uint64_t start_stack = 0;  // changes with exec; 0 where it may not be read
};

struct Peer {
  ProcessIdentity identity;
  ProcessStat stat;  // as it was when the peer was identified
  UniqueFd pidfd;
  std::uint32_t uid = 0;
  bool needs_challenge = false;
};

// The process that made the connection. An error when it is already gone.
Result<Peer> peer_of(int connection, IdentityPath path);

// A pidfd of the process that `identity` meant, or an error when it is no more.
Result<UniqueFd> find_process(const ProcessIdentity& identity);

// False from the moment the process is a zombie: no instruction of it can follow, and the files of
// its threads are closed.
bool is_alive(int pidfd);

// From /proc/PID/stat. Hold a pidfd and look that it is alive afterwards.
Result<ProcessStat> process_stat(std::int32_t pid);

// The inode of /proc/PID/ns/NAME, 0 where it may not be read.
std::uint64_t namespace_of(std::int32_t pid, const char* name);

// This process's own; they do not change while it lives.
std::uint64_t own_namespace(const char* name);

// Its number in its own pid namespace (the last of NSpid in /proc/PID/status); `pid` itself where
// that may not be read.
std::int32_t innermost_pid(std::int32_t pid);

// This boot's id, as 16 bytes of /proc/sys/kernel/random/boot_id.
struct BootId {
  std::uint64_t words[2] = {};
  bool operator==(const BootId&) const = default;
};
BootId boot_id();

}  // namespace aliquot::broker
