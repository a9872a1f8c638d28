#include "kube/base64.h"

#include <cstdint>

namespace aliquot::kube {

namespace {
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

Result<std::string> decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;  // bits of `bits` that are not out yet
  int padding = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    ++digits;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0)
      return Error{Errc::kInvalid, "no base64: a character that it has not"};
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<char>(bits >> held & 0xff));
    }
  }
  if (digits % 4 != 0 || padding > 2) return Error{Errc::kInvalid, "no base64: it breaks off"};
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      out.push_back(i <= count ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=');
  }
  return out;
}

}  // namespace aliquot::kube
