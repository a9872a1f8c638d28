#include "format/fields.h"

#include <algorithm>

namespace aliquot::format {

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object_.if_object() == nullptr)
    error_ = where_ + ": expected an object, not " + std::string(object_.kind());
}

std::string Fields::place(std::string_view key) const {
  // "file: a" at the top, "file: a.b" below it.
  const char* joint = where_.find(": ") == std::string::npos ? ": " : ".";
  return where_ + joint + std::string(key);
}

Fields& Fields::reject(std::string_view key, std::string_view why) {
  if (error_.empty()) error_ = place(key) + ": " + std::string(why);
  return *this;
}

Status Fields::done() {
  if (error_.empty())
    for (const Json::Member& member : *object_.if_object())
      if (std::ranges::find(known_, member.key) == known_.end()) reject(member.key, "unknown key");
  if (error_.empty()) return {};
  return Error{Errc::kInvalid, error_};
}

const Json* Fields::take(std::string_view key, bool must) {
  if (!error_.empty()) return nullptr;
  known_.emplace_back(key);
  const Json* value = object_.find(key);
  if (value == nullptr && must) reject(key, "missing");
  return value;
}

void Fields::read(const Json& value, std::string_view key, bool& out) {
  if (const bool* flag = value.if_bool())
    out = *flag;
  else
    mismatch(key, "true or false", value);
}

void Fields::read(const Json& value, std::string_view key, double& out) {
  if (const double* number = value.if_double())
    out = *number;
  else if (const std::int64_t* whole = value.if_int())
    out = static_cast<double>(*whole);
  else
    mismatch(key, "a number", value);
}

void Fields::read(const Json& value, std::string_view key, std::string& out) {
  if (const std::string* text = value.if_string())
    out = *text;
  else
    mismatch(key, "a string", value);
}

bool Fields::whole_number(const Json& value, std::string_view key, std::int64_t& number,
                          std::uint64_t& magnitude) {
  if (const std::uint64_t* big = value.if_big()) {
    magnitude = *big;
    return true;
  }
  if (const std::int64_t* whole = value.if_int()) {
    number = *whole;
    magnitude = static_cast<std::uint64_t>(*whole);
    return true;
  }
  mismatch(key, "a whole number", value);
  return false;
}

void Fields::mismatch(std::string_view key, std::string_view expected, const Json& value) {
  reject(key, "expected " + std::string(expected) + ", not " + std::string(value.kind()));
}

}  // namespace aliquot::format
