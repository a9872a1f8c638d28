// The contents of simulated device memory: a sparse file, read and written by system calls so that
// nothing of it is ever mapped (reading a hole through a mapping would commit it). Uniform fills
// of whole granules are remembered, not written. Real memory is taken only after asking.
//
// Under the library's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "common/unique_fd.h"

namespace aliquot::simdriver {

// A repeated value: `width` is 1, 2 or 4 bytes.
struct Pattern {
  std::uint32_t value = 0;
  std::uint32_t width = 1;
};

// Asks for real memory (positive) or gives it back (negative); false: the host has no more.
using Commit = std::function<bool(std::int64_t bytes)>;

class MemoryFile {
 public:
  enum class Sharing {
    kPrivate,  // this object is the only way to the bytes
    kShared,   // others read and write them too: every byte is really written
  };

  MemoryFile(UniqueFd file, Sharing sharing, Commit commit)
      : file_(std::move(file)), sharing_(sharing), commit_(std::move(commit)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  // False: the host's memory is used up (nothing more is written then), or the file failed.
  [[nodiscard]] bool read(std::uint64_t at, void* to, std::uint64_t bytes);
  [[nodiscard]] bool write(std::uint64_t at, const void* from, std::uint64_t bytes);
  // `at` and `bytes` are multiples of the pattern's width.
  [[nodiscard]] bool fill(std::uint64_t at, std::uint64_t bytes, Pattern pattern);
  // Back to zeros, and the host's memory with them. Whole granules inside the range only.
  void punch(std::uint64_t at, std::uint64_t bytes);

  int fd() const { return file_.get(); }

 private:
  // What is known of a granule; none: a hole, all zeros. Filled: the pattern, nothing written.
  enum class State : std::uint8_t { kWritten, kFilled };
  struct Granule {
    State state = State::kWritten;
    Pattern pattern;
  };

  bool make_writable(std::uint64_t granule);
  bool write_range(std::uint64_t at, const std::byte* from, std::uint64_t bytes);
  bool write_pattern(std::uint64_t at, std::uint64_t bytes, Pattern pattern);
  void forget(std::uint64_t granule);

  UniqueFd file_;
  Sharing sharing_;
  Commit commit_;
  std::unordered_map<std::uint64_t, Granule> granules_;
};

}  // namespace aliquot::simdriver
