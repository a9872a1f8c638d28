// A JSON value, parsed and printed. Objects keep the order in which they were written.
//
// Leaves to others: reading one's own structure out of it (fields.h). The parser library is seen by
// json.cc alone. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.h"

namespace aliquot::format {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  // Bodies that need a complete Member stand below it: clang insists.
  Json();                        // null
  Json(bool value);              // NOLINT
  Json(int value);               // NOLINT
  Json(unsigned value);          // NOLINT
  Json(std::int64_t value);      // NOLINT
  Json(std::uint64_t value);     // NOLINT
  Json(double value);            // NOLINT
  Json(const char* value);       // NOLINT
  Json(std::string_view value);  // NOLINT
  Json(std::string value);       // NOLINT
  Json(Array value);             // NOLINT
  Json(Object value);            // NOLINT
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();

  // The value if it is one of that type, else nullptr. An integer above int64 is kept as uint64.
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_int() const { return std::get_if<std::int64_t>(&value_); }
  const std::uint64_t* if_big() const { return std::get_if<std::uint64_t>(&value_); }
  const double* if_double() const { return std::get_if<double>(&value_); }
  const std::string* if_string() const { return std::get_if<std::string>(&value_); }
  const Array* if_array() const { return std::get_if<Array>(&value_); }
  const Object* if_object() const { return std::get_if<Object>(&value_); }
  bool is_null() const { return value_.index() == 0; }

  // "a string", "an object", ... for messages.
  std::string_view kind() const;

  // The member of an object; nullptr where there is none or this is no object.
  const Json* find(std::string_view key) const;

  // Builders: a null becomes an object or an array first. Setting a key again replaces its value.
  Json& set(std::string_view key, Json value);
  Json& append(Json value);

  // indent < 0: one line. Bytes that are not UTF-8 are replaced, so that dump never fails; so are
  // numbers that JSON has not (infinite, NaN): null.
  std::string dump(int indent = -1) const;

  bool operator==(const Json& other) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

struct Json::Member {
  std::string key;
  Json value;
  bool operator==(const Member&) const = default;
};

inline Json::Json() = default;
inline Json::Json(bool value) : value_(value) {}
inline Json::Json(int value) : value_(std::int64_t{value}) {}
inline Json::Json(unsigned value) : value_(std::int64_t{value}) {}
inline Json::Json(std::int64_t value) : value_(value) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(Array value) : value_(std::move(value)) {}
inline Json::Json(const Json& other) = default;
inline Json::Json(Json&& other) noexcept = default;
inline Json& Json::operator=(const Json& other) = default;
inline Json& Json::operator=(Json&& other) noexcept = default;
inline Json::~Json() = default;
inline Json Json::array() { return Json(Array{}); }
inline Json Json::object() { return Json(Object{}); }

// `where` names the text in errors, which read "where:line:column: what". Refused: a key given
// twice in one object, more than 64 levels, anything after the value.
Result<Json> parse_json(std::string_view text, std::string_view where);

}  // namespace aliquot::format
