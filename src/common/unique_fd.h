// UniqueFd: a file descriptor with one owner. Not shared between threads without the owner's care.
#pragma once

#include <utility>

namespace aliquot {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // The caller owns the descriptor from here on.
  int release() { return std::exchange(fd_, -1); }
  // Closes what is held; keeps errno.
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

}  // namespace aliquot
