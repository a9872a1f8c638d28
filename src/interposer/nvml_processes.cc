#include "interposer/nvml_processes.h"

#include <unistd.h>

namespace aliquot::interposer {

// "pid:[4026531836]". Not stat(): its symbol is younger than glibc 2.17.
std::uint64_t own_pid_namespace() {
  char text[64];
  const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text);
  std::uint64_t inode = 0;
  for (ssize_t i = 0; i < length; ++i)
    if (text[i] >= '0' && text[i] <= '9')
      inode = inode * 10 + static_cast<std::uint64_t>(text[i] - '0');
  return inode;
}

unsigned pid_of_driver_pid(unsigned driver_pid) {
  unsigned found = 0;
  for_each_own_process(0, [&](const OwnProcess& process) {
    if (process.driver_pid == driver_pid) found = process.pid;
  });
  return found;
}

unsigned driver_pid_of_pid(unsigned pid) {
  unsigned found = 0;
  for_each_own_process(0, [&](const OwnProcess& process) {
    if (process.pid == pid) found = process.driver_pid;
  });
  return found;
}

}  // namespace aliquot::interposer
