#include "common/unique_fd.h"

#include <unistd.h>

#include <cerrno>

namespace aliquot {

void UniqueFd::reset(int fd) {
  const int saved = errno;
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  errno = saved;
}

}  // namespace aliquot
