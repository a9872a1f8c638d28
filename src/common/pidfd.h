// A process that stays the one it was, whatever becomes of its number: its pidfd (Linux 5.3). Any
// thread.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/unique_fd.h"

namespace aliquot {

// Empty, with errno, where there is no such process.
inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// False, with errno: it has ended, or may not be sent to.
inline bool signal_process(const UniqueFd& pidfd, int number) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0) == 0;
}

}  // namespace aliquot
