#include "simdriver/cuda/memory_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {
namespace {

// Fills and reads of patterns go through a buffer of this size.
constexpr std::uint64_t kBufferBytes = 256 << 10;

void repeat(std::byte* to, std::uint64_t bytes, std::uint64_t phase, Pattern pattern) {
  if (pattern.width == 1) {
    std::memset(to, static_cast<int>(pattern.value & 0xff), bytes);
    return;
  }
  std::byte one[sizeof(pattern.value)];
  std::memcpy(one, &pattern.value, sizeof(one));
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = one[(phase + i) % pattern.width];
}

}  // namespace

MemoryFile::~MemoryFile() {
  const auto written = std::ranges::count_if(
      granules_, [](const auto& granule) { return granule.second.state == State::kWritten; });
  if (written != 0) commit_(-written * static_cast<std::int64_t>(kGranuleBytes));
}

bool MemoryFile::read(std::uint64_t at, void* to, std::uint64_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const std::uint64_t granule = at / kGranuleBytes;
    const std::uint64_t part = std::min(bytes, (granule + 1) * kGranuleBytes - at);
    const auto known = granules_.find(granule);
    if (known != granules_.end() && known->second.state == State::kFilled) {
      repeat(out, part, at, known->second.pattern);
    } else if (known == granules_.end() && sharing_ == Sharing::kPrivate) {
      std::memset(out, 0, part);  // a hole
    } else {
      for (std::uint64_t done = 0; done < part;) {
        const ssize_t got =
            pread(file_.get(), out + done, part - done, static_cast<off_t>(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<std::uint64_t>(got);
      }
    }
    out += part;
    at += part;
    bytes -= part;
  }
  return true;
}

bool MemoryFile::write_range(std::uint64_t at, const std::byte* from, std::uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t put = pwrite(file_.get(), from, bytes, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    at += static_cast<std::uint64_t>(put);
    bytes -= static_cast<std::uint64_t>(put);
  }
  return true;
}

bool MemoryFile::write_pattern(std::uint64_t at, std::uint64_t bytes, Pattern pattern) {
  std::vector<std::byte> buffer(std::min(bytes, kBufferBytes));
  repeat(buffer.data(), buffer.size(), at, pattern);
  while (bytes > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(bytes, buffer.size());
    if (!write_range(at, buffer.data(), part)) return false;
    at += part;
    bytes -= part;
  }
  return true;
}

// From here on the granule's bytes are those of the file.
bool MemoryFile::make_writable(std::uint64_t granule) {
  const auto known = granules_.find(granule);
  if (known != granules_.end() && known->second.state == State::kWritten) return true;
  if (!commit_(kGranuleBytes)) return false;
  if (known != granules_.end()) {
    if (!write_pattern(granule * kGranuleBytes, kGranuleBytes, known->second.pattern)) return false;
    known->second.state = State::kWritten;
  } else {
    granules_[granule] = {};
  }
  return true;
}

bool MemoryFile::write(std::uint64_t at, const void* from, std::uint64_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::uint64_t granule = at / kGranuleBytes;
    const std::uint64_t part = std::min(bytes, (granule + 1) * kGranuleBytes - at);
    if (!make_writable(granule) || !write_range(at, in, part)) return false;
    in += part;
    at += part;
    bytes -= part;
  }
  return true;
}

bool MemoryFile::fill(std::uint64_t at, std::uint64_t bytes, Pattern pattern) {
  const bool zero = pattern.value == 0;
  while (bytes > 0) {
    const std::uint64_t granule = at / kGranuleBytes;
    const std::uint64_t part = std::min(bytes, (granule + 1) * kGranuleBytes - at);
    const bool whole = part == kGranuleBytes;
    const auto known = granules_.find(granule);
    const bool hole = known == granules_.end();
    if (sharing_ == Sharing::kPrivate && whole) {
      forget(granule);
      if (!zero) granules_[granule] = {State::kFilled, pattern};
    } else if (!(zero && hole && sharing_ == Sharing::kPrivate)) {
      if (!make_writable(granule) || !write_pattern(at, part, pattern)) return false;
    }
    at += part;
    bytes -= part;
  }
  return true;
}

void MemoryFile::forget(std::uint64_t granule) {
  const auto known = granules_.find(granule);
  if (known == granules_.end()) return;
  if (known->second.state == State::kWritten) {
    fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(granule * kGranuleBytes), kGranuleBytes);
    commit_(-static_cast<std::int64_t>(kGranuleBytes));
  }
  granules_.erase(known);
}

void MemoryFile::punch(std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t first = (at + kGranuleBytes - 1) / kGranuleBytes;
  const std::uint64_t end = (at + bytes) / kGranuleBytes;
  // A huge range with little in it costs what is in it.
  if (end - first > granules_.size()) {
    std::vector<std::uint64_t> inside;
    for (const auto& [granule, state] : granules_) {
      if (granule >= first && granule < end) inside.push_back(granule);
    }
    for (const std::uint64_t granule : inside) forget(granule);
    return;
  }
  for (std::uint64_t granule = first; granule < end; ++granule) forget(granule);
}

}  // namespace aliquot::simdriver
