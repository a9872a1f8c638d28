#include "simdriver/server/exports.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace aliquot::simdriver {

Exports::Exports() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

UniqueFd Exports::add(std::uint64_t block) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  struct stat about{};
  if (fstat(reading.get(), &about) != 0) return {};
  epoll_event event{};
  event.events = 0;  // what somebody writes is nobody's business; a hang-up is always told
  event.data.u64 = about.st_ino;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, reading.get(), &event) != 0) return {};
  all_[about.st_ino] = {block, about.st_dev, std::move(reading)};
  return writing;
}

std::optional<std::uint64_t> Exports::block_of(int fd) const {
  struct stat about{};
  if (fstat(fd, &about) != 0) return std::nullopt;
  const auto found = all_.find(about.st_ino);
  // A file of another file system may have the same number.
  if (found == all_.end() || found->second.device != about.st_dev) return std::nullopt;
  return found->second.block;
}

std::vector<std::uint64_t> Exports::take_closed() {
  std::vector<std::uint64_t> blocks;
  std::array<epoll_event, 64> ready{};
  for (;;) {
    const int count = epoll_wait(epoll_.get(), ready.data(), ready.size(), 0);
    if (count <= 0) return blocks;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t inode = ready[static_cast<std::size_t>(i)].data.u64;  // it is packed
      const auto found = all_.find(inode);
      if (found == all_.end()) continue;
      blocks.push_back(found->second.block);
      all_.erase(found);  // its end is closed, and so out of the set
    }
  }
}

}  // namespace aliquot::simdriver
