// Reading of Kubernetes objects: by path, with absent and null alike, unknown fields ignored.
// Faults of type are collected, the first one is told. For the views of this room; one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "common/result.h"
#include "format/json.h"

namespace aliquot::kube {

using TextMap = std::map<std::string, std::string, std::less<>>;
using Path = std::initializer_list<std::string_view>;

class ObjectReader {
 public:
  // `where` names the object in errors; it and the Json outlive the reader.
  ObjectReader(const format::Json& object, std::string_view where)
      : object_(object), where_(where) {}

  // Absent: "", 0, false, an empty map, an empty list.
  std::string text(Path path);
  std::int64_t number(Path path);
  bool flag(Path path);
  TextMap texts(Path path);
  const format::Json::Array& list(Path path);
  // nullptr where absent or null.
  const format::Json* find(Path path) const;

  // The first value of another type than was asked for.
  Status done() const;

 private:
  void mismatch(Path path, std::string_view expected, const format::Json& found);

  const format::Json& object_;
  std::string where_;
  std::string fault_;
};

}  // namespace aliquot::kube
