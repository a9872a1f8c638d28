// Descriptors that stand for blocks: what cuMemExportToShareableHandle gives out. Each is the
// writing end of a pipe whose other end stays here, so that the close of its last copy, in whatever
// process or message it lies, is seen; until then the block is kept.
//
// What a block is belongs to BlockTable. The server's loop is the only caller.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/unique_fd.h"

namespace aliquot::simdriver {

class Exports {
 public:
  Exports();
  // The descriptor to hand out, of which no copy stays here; empty: the host has no more.
  UniqueFd add(std::uint64_t block);
  // The block that a descriptor stands for; nothing: it is none of ours.
  std::optional<std::uint64_t> block_of(int fd) const;
  // The blocks of descriptors of which no copy is left, once for each.
  std::vector<std::uint64_t> take_closed();
  // Readable when there are such; borrowed.
  int fd() const { return epoll_.get(); }
  std::size_t size() const { return all_.size(); }

 private:
  struct Export {
    std::uint64_t block = 0;
    dev_t device = 0;  // on which the number of the pipe counts
    UniqueFd reading_end;
  };

  UniqueFd epoll_;
  // By the pipe's number: both ends have it, and nothing else while one of them is open.
  std::map<ino_t, Export> all_;
};

}  // namespace aliquot::simdriver
