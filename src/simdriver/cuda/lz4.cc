#include "simdriver/cuda/lz4.h"

#include <cstdint>

namespace aliquot::simdriver {
namespace {

class Block {
 public:
  explicit Block(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) {
      broken_ = true;
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view take(std::size_t count) {
    if (count > rest_.size()) {
      broken_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  // A nibble of 15 goes on in bytes of 255.
  std::size_t length(std::size_t nibble) {
    if (nibble != 15) return nibble;
    std::uint8_t more = 255;
    while (more == 255 && !broken_) {
      more = byte();
      nibble += more;
    }
    return nibble;
  }
  bool broken() const { return broken_; }

 private:
  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace

std::optional<std::string> lz4_block(std::string_view block, std::size_t full_bytes) {
  constexpr std::size_t kShortestMatch = 4;
  std::string out;
  out.reserve(full_bytes);
  Block in(block);
  while (!in.empty() && !in.broken() && out.size() < full_bytes) {
    const std::uint8_t token = in.byte();
    const std::size_t literals = in.length(token >> 4);
    if (literals > full_bytes - out.size()) return std::nullopt;
    out += in.take(literals);
    if (in.empty()) break;  // the last sequence has no match
    const std::size_t low = in.byte();
    const std::size_t distance = low | static_cast<std::size_t>(in.byte()) << 8;
    const std::size_t match = in.length(token & 15) + kShortestMatch;
    if (distance == 0 || distance > out.size() || match > full_bytes - out.size()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < match; ++i) out += out[out.size() - distance];
  }
  if (in.broken() || !in.empty() || out.size() != full_bytes) return std::nullopt;
  return out;
}

}  // namespace aliquot::simdriver
