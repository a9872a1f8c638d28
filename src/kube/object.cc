#include "kube/object.h"

namespace aliquot::kube {

using format::Json;

const Json* ObjectReader::find(Path path) const {
  const Json* at = &object_;
  for (const std::string_view key : path) {
    at = at->find(key);
    if (at == nullptr || at->is_null()) return nullptr;
  }
  return at;
}

std::string ObjectReader::text(Path path) {
  const Json* found = find(path);
  if (found == nullptr) return {};
  if (const std::string* text = found->if_string()) return *text;
  mismatch(path, "a string", *found);
  return {};
}

std::int64_t ObjectReader::number(Path path) {
  const Json* found = find(path);
  if (found == nullptr) return 0;
  if (const std::int64_t* number = found->if_int()) return *number;
  mismatch(path, "a whole number", *found);
  return 0;
}

bool ObjectReader::flag(Path path) {
  const Json* found = find(path);
  if (found == nullptr) return false;
  if (const bool* flag = found->if_bool()) return *flag;
  mismatch(path, "true or false", *found);
  return false;
}

TextMap ObjectReader::texts(Path path) {
  TextMap out;
  const Json* found = find(path);
  if (found == nullptr) return out;
  const Json::Object* members = found->if_object();
  if (members == nullptr) {
    mismatch(path, "an object", *found);
    return out;
  }
  for (const Json::Member& member : *members) {
    const std::string* text = member.value.if_string();
    if (text == nullptr)
      mismatch(path, "strings", member.value);
    else
      out.emplace(member.key, *text);
  }
  return out;
}

const Json::Array& ObjectReader::list(Path path) {
  static const Json::Array kNone;
  const Json* found = find(path);
  if (found == nullptr) return kNone;
  if (const Json::Array* items = found->if_array()) return *items;
  mismatch(path, "a list", *found);
  return kNone;
}

Status ObjectReader::done() const {
  if (fault_.empty()) return {};
  return Error{Errc::kInvalid, fault_};
}

void ObjectReader::mismatch(Path path, std::string_view expected, const Json& found) {
  if (!fault_.empty()) return;
  fault_ = where_ + ": ";
  for (const std::string_view key : path) fault_ += std::string(key) + ".";
  fault_.back() = ':';
  fault_ += " expected " + std::string(expected) + ", not " + std::string(found.kind());
}

}  // namespace aliquot::kube
