// Reads one JSON object into a struct, strictly: every key must be known, every type right.
//
//   Fields fields(json, "a100.json");
//   fields.required("name", spec.name).optional("fans", spec.fans);
//   return fields.done();
//
// The first fault is kept and told by done() with the place ("a100.json: clocks.sm: expected a
// whole number, not a string"); the calls after it change nothing. Borrowed: the Json outlives the
// Fields. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "format/json.h"

namespace aliquot::format {

class Fields {
 public:
  Fields(const Json& object, std::string where);

  template <typename T>
  Fields& required(std::string_view key, T& out) {
    if (const Json* value = take(key, true)) read(*value, key, out);
    return *this;
  }

  // `out` keeps its value where the key is absent.
  template <typename T>
  Fields& optional(std::string_view key, T& out) {
    if (const Json* value = take(key, false)) read(*value, key, out);
    return *this;
  }

  bool has(std::string_view key) const { return object_.find(key) != nullptr; }

  // Says that the value under `key` is wrong, for what types cannot tell.
  Fields& reject(std::string_view key, std::string_view why);

  // How errors name this object and what is in it.
  std::string place(std::string_view key) const;

  // The first fault, or the first key that nobody asked for.
  Status done();

 private:
  const Json* take(std::string_view key, bool must);
  void read(const Json& value, std::string_view key, bool& out);
  void read(const Json& value, std::string_view key, double& out);
  void read(const Json& value, std::string_view key, std::string& out);
  void read(const Json& value, std::string_view, Json& out) { out = value; }
  template <std::integral T>
  void read(const Json& value, std::string_view key, T& out) {
    // Two bounds rather than one wide type: no integer holds both int64 and uint64.
    std::uint64_t magnitude = 0;
    std::int64_t number = 0;
    if (!whole_number(value, key, number, magnitude)) return;
    const bool fits = number < 0 ? std::in_range<T>(number) : std::in_range<T>(magnitude);
    if (fits)
      out = static_cast<T>(number < 0 ? static_cast<std::uint64_t>(number) : magnitude);
    else
      reject(key, "out of range");
  }
  template <typename T>
  void read(const Json& value, std::string_view key, std::vector<T>& out) {
    const Json::Array* items = value.if_array();
    if (items == nullptr) return mismatch(key, "a list", value);
    std::vector<T> all(items->size());
    for (std::size_t i = 0; i < items->size() && error_.empty(); ++i)
      read((*items)[i], std::string(key) + "[" + std::to_string(i) + "]", all[i]);
    out = std::move(all);
  }
  bool whole_number(const Json& value, std::string_view key, std::int64_t& number,
                    std::uint64_t& magnitude);
  void mismatch(std::string_view key, std::string_view expected, const Json& value);

  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
  std::string error_;
};

}  // namespace aliquot::format
