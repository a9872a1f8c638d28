// How administrators' messages travel: a header, then the fields of one value after another.
//
// Numbers are 8 bytes of this machine's order, a text is its length and its bytes, a list its
// length and its items. One function `fields(archive, value)` names the fields of a type for both
// directions. A Decoder never reads beyond its message nor allocates more than the message could
// hold: input is bounded by what was received. Values; any thread. Bytes: docs/formats/broker.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "broker/requests.h"

namespace aliquot::broker {

inline constexpr std::uint32_t kAdminMagic = 0x31414c41;  // "ALA1" in memory order
inline constexpr std::uint32_t kAdminVersion = 3;
inline constexpr std::size_t kLargestMessage = 128u << 10;

// 5 and 9 are retired: they set memory and compute apart.
enum class Verb : std::uint32_t {
  kCreate = 1,
  kJoin = 2,
  kList = 3,  // body: the name after which to go on
  kGet = 4,
  kRoom = 6,
  kBypasses = 7,
  kShutdown = 8,
  kSetGpu = 10,
  kGpus = 11,  // body: the driver
  kNotes = 12,
  kSetShare = 13,
  kFailed = 100,  // reply: an Error
};

struct AdminHeader {
  std::uint32_t magic = kAdminMagic;
  std::uint32_t version = kAdminVersion;
  Verb verb = Verb::kList;
  std::uint32_t reserved = 0;
};

struct LeasePage {
  std::vector<LeaseRow> rows;
  bool more = false;
};

class Encoder {
 public:
  template <typename T>
  void operator()(const T& value) {
    if constexpr (std::integral<T> || std::is_enum_v<T>) {
      const auto word = static_cast<std::uint64_t>(value);
      bytes_.append(reinterpret_cast<const char*>(&word), sizeof word);
    } else {
      // `fields` serves both directions and so takes a reference that may be written; not here.
      fields(*this, const_cast<T&>(value));
    }
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_.append(text);
  }
  template <typename T>
  void operator()(const std::vector<T>& items) {
    (*this)(items.size());
    for (const T& item : items) (*this)(item);
  }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  std::string take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::integral<T> || std::is_enum_v<T>) {
      std::uint64_t word = 0;
      if (!take(&word)) return;
      value = static_cast<T>(word);
      // A number that the field cannot hold is no number of ours.
      if (static_cast<std::uint64_t>(value) != word) ok_ = false;
    } else {
      fields(*this, value);
    }
  }
  void operator()(bool& value) {
    std::uint64_t word = 0;
    if (!take(&word)) return;
    if (word > 1) ok_ = false;
    value = word == 1;
  }
  void operator()(std::string& text) {
    std::uint64_t size = 0;
    if (!take(&size)) return;
    if (size > rest_.size()) {
      ok_ = false;
      return;
    }
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void operator()(std::vector<T>& items) {
    std::uint64_t size = 0;
    if (!take(&size)) return;
    // Every item takes at least a word.
    if (size > rest_.size() / sizeof(std::uint64_t)) {
      ok_ = false;
      return;
    }
    items.clear();
    for (std::uint64_t i = 0; i < size && ok_; ++i) (*this)(items.emplace_back());
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    bool there = false;
    (*this)(there);
    value.reset();
    if (there && ok_) (*this)(value.emplace());
  }
  // Everything was read, and nothing is left.
  bool is_complete() const { return ok_ && rest_.empty(); }

 private:
  bool take(std::uint64_t* word) {
    if (!ok_ || rest_.size() < sizeof *word) {
      ok_ = false;
      return false;
    }
    std::memcpy(word, rest_.data(), sizeof *word);
    rest_.remove_prefix(sizeof *word);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <typename T>
std::string encoded(const T& value) {
  Encoder encoder;
  encoder(value);
  return encoder.take();
}

// False: the bytes are not exactly one T.
template <typename T>
bool decode(std::string_view bytes, T& value) {
  Decoder decoder(bytes);
  decoder(value);
  return decoder.is_complete();
}

}  // namespace aliquot::broker

#include "broker/codec_fields.h"
