#include "format/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <string>
#include <vector>

namespace aliquot::format {

namespace {

constexpr int kDeepest = 64;
constexpr int kMostValues = 100'000;

class Converter {
 public:
  explicit Converter(std::string_view where) : where_(where) {}

  Result<Json> convert(const YAML::Node& node, int depth) {
    if (depth > kDeepest) return fault(node.Mark(), "more than 64 levels");
    if (++values_ > kMostValues) return fault(node.Mark(), "more than 100000 values");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
        return sequence(node, depth);
      case YAML::NodeType::Map:
        return map(node, depth);
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        break;
    }
    return Json();
  }

  Error fault(const YAML::Mark& mark, std::string_view what) const {
    std::string message = where_;
    if (!mark.is_null())
      message += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    return Error{Errc::kInvalid, message + ": " + std::string(what)};
  }

 private:
  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    // "!": quoted, or a block scalar: a string whatever it looks like.
    if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return text;
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return {};
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    return number(text);
  }

  // What starts like a number and is none stays text: 10.0.0.1, 4GiB, 1_000.
  static Json number(const std::string& text) {
    const char first = text.front();
    if ((first < '0' || first > '9') && first != '-' && first != '.') return text;
    const char* const end = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto [stop, error] = std::from_chars(text.data(), end, whole);
        error == std::errc() && stop == end)
      return whole;
    double real = 0;
    if (const auto [stop, error] = std::from_chars(text.data(), end, real);
        error == std::errc() && stop == end)
      return real;
    return text;
  }

  Result<Json> sequence(const YAML::Node& node, int depth) {
    Json out = Json::array();
    for (const YAML::Node& item : node) {
      Result<Json> value = convert(item, depth + 1);
      if (!value) return value;
      out.append(*std::move(value));
    }
    return out;
  }

  Result<Json> map(const YAML::Node& node, int depth) {
    Json out = Json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) return fault(member.first.Mark(), "a key that is no scalar");
      const std::string& key = member.first.Scalar();
      if (out.find(key) != nullptr)
        return fault(member.first.Mark(), "'" + key + "' is given twice");
      Result<Json> value = convert(member.second, depth + 1);
      if (!value) return value;
      out.set(key, *std::move(value));
    }
    return out;
  }

  std::string where_;
  int values_ = 0;
};

}  // namespace

Result<Json> parse_yaml(std::string_view text, std::string_view where) {
  Converter converter(where);
  // The library tells its faults by exceptions; they end here.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.empty()) return Json();
    if (documents.size() > 1)
      return converter.fault(documents[1].Mark(), "a second document; one is expected");
    return converter.convert(documents.front(), 0);
  } catch (const YAML::Exception& exception) {
    return converter.fault(exception.mark, exception.msg);
  }
}

}  // namespace aliquot::format
