// Structs to JSON and back from one list of their fields.
//
//   template <typename V> void describe(V& v, Clocks& c) { v("sm_mhz", c.sm_mhz); ... }
//   Json json = write_described(clocks);           Status read = read_described(json, where,
//   clocks);
//
// describe() is found beside the struct. A field is a described struct, a text (to_text and
// from_text beside its type), what Fields reads, or a vector or optional of those. Reading is as
// strict as Fields: every key known, none missing but optionals, which are left out when empty.
// Values; any thread.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/fields.h"
#include "format/json.h"

namespace aliquot::format {

class DescribedWriter;

template <typename T>
concept Described = requires(DescribedWriter& v, T& value) { describe(v, value); };

template <typename T>
concept Textual = requires(const T& value, T& out, std::string_view text) {
  { to_text(value) } -> std::same_as<std::string>;
  { from_text(text, out) } -> std::same_as<bool>;
};

// What Fields cannot read by itself.
template <typename T>
inline constexpr bool kStructured = Described<T> || Textual<T>;
template <typename T>
inline constexpr bool kStructured<std::vector<T>> = kStructured<T>;

class DescribedWriter {
 public:
  template <typename T>
  void operator()(const char* key, T& value) {
    json_.set(key, json_of(value));
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) json_.set(key, json_of(*value));
  }

  template <typename T>
  static Json json_of(T& value) {
    if constexpr (Described<T>) {
      DescribedWriter inner;
      describe(inner, value);
      return std::move(inner.json_);
    } else if constexpr (Textual<T>) {
      return to_text(value);
    } else {
      return Json(value);
    }
  }
  template <typename T>
  static Json json_of(std::vector<T>& values) {
    Json list = Json::array();
    for (T& value : values) list.append(json_of(value));
    return list;
  }

 private:
  Json json_ = Json::object();
};

class DescribedReader {
 public:
  DescribedReader(const Json& json, std::string where) : fields_(json, std::move(where)) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (kStructured<T>) {
      Json inner;
      fields_.required(key, inner);
      if (fields_.has(key)) keep(read(inner, fields_.place(key), value));
    } else {
      fields_.required(key, value);
    }
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    value.reset();
    if (fields_.has(key)) (*this)(key, value.emplace());
  }

  Status done() {
    Status own = fields_.done();
    return own ? inner_ : own;
  }

  template <typename T>
  static Status read(const Json& json, const std::string& where, T& value) {
    if constexpr (Described<T>) {
      DescribedReader reader(json, where);
      describe(reader, value);
      return reader.done();
    } else {
      const std::string* text = json.if_string();
      if (text == nullptr)
        return Error{Errc::kInvalid,
                     where + ": expected a string, not " + std::string(json.kind())};
      if (from_text(*text, value)) return {};
      return Error{Errc::kInvalid, where + ": not valid: " + *text};
    }
  }
  template <typename T>
  static Status read(const Json& json, const std::string& where, std::vector<T>& values) {
    const Json::Array* items = json.if_array();
    if (items == nullptr)
      return Error{Errc::kInvalid, where + ": expected a list, not " + std::string(json.kind())};
    values.assign(items->size(), T());
    for (std::size_t i = 0; i < items->size(); ++i) {
      Status status = read((*items)[i], where + "[" + std::to_string(i) + "]", values[i]);
      if (!status) return status;
    }
    return {};
  }

 private:
  void keep(Status status) {
    if (!status && inner_) inner_ = std::move(status);
  }

  Fields fields_;
  Status inner_;
};

template <typename T>
Json write_described(const T& value) {
  T copy = value;  // describe() names the fields of a value that may be written to
  return DescribedWriter::json_of(copy);
}

template <typename T>
Status read_described(const Json& json, std::string_view where, T& value) {
  return DescribedReader::read(json, std::string(where), value);
}

}  // namespace aliquot::format
