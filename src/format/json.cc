#include "format/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace aliquot::format {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Builds our value straight from the parser's events: its own tree would lose the order of keys
// and swallow doubled ones.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(std::int64_t value) override { return add(Json(value)); }
  bool number_unsigned(std::uint64_t value) override { return add(Json(value)); }
  bool number_float(double value, const std::string&) override { return add(Json(value)); }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& value) override {
    if (open_.back().find(value) != nullptr) return fail("key \"" + value + "\" is given twice");
    keys_.back() = std::move(value);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    offset_ = byte == 0 ? 0 : byte - 1;
    const std::string what = error.what();
    const std::size_t dash = what.find(" - ");
    return fail(dash == std::string::npos ? what : what.substr(dash + 3));
  }

  Json take() { return std::move(root_); }
  const std::string& message() const { return message_; }
  std::size_t offset() const { return offset_; }
  bool knows_where() const { return offset_ != std::string::npos; }

 private:
  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }

  bool open(Json container) {
    if (open_.size() == kMaxDepth) return fail("more than 64 levels");
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(done));
  }

  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().if_array() != nullptr)
      open_.back().append(std::move(value));
    else
      open_.back().set(keys_.back(), std::move(value));
    return true;
  }

  Json root_;
  std::vector<Json> open_;         // the containers around the place being read
  std::vector<std::string> keys_;  // beside each of them, the key now being read
  std::string message_;
  std::size_t offset_ = std::string::npos;
};

std::string position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return std::to_string(line) + ":" + std::to_string(column);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}

  void print(const Json& json) {
    if (const bool* flag = json.if_bool())
      out_ += *flag ? "true" : "false";
    else if (const auto* integer = json.if_int())
      out_ += std::to_string(*integer);
    else if (const auto* big = json.if_big())
      out_ += std::to_string(*big);
    else if (const double* number = json.if_double())
      out_ += std::isfinite(*number) ? nlohmann::json(*number).dump() : "null";
    else if (const auto* text = json.if_string())
      out_ += quoted(*text);
    else if (const auto* array = json.if_array())
      list('[', ']', *array, [this](const Json& value) { print(value); });
    else if (const auto* object = json.if_object())
      list('{', '}', *object, [this](const Json::Member& member) {
        out_ += quoted(member.key) + (indent_ < 0 ? ":" : ": ");
        print(member.value);
      });
    else
      out_ += "null";
  }

  std::string take() { return std::move(out_); }

 private:
  template <typename Items, typename Print>
  void list(char open, char close, const Items& items, Print print_item) {
    out_ += open;
    depth_ += 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ',';
      new_line();
      print_item(items[i]);
    }
    depth_ -= 1;
    if (!items.empty()) new_line();
    out_ += close;
  }

  void new_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * depth_, ' ');
  }

  int indent_;
  std::size_t depth_ = 0;
  std::string out_;
};

}  // namespace

Json::Json(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    value_ = static_cast<std::int64_t>(value);
  else
    value_ = value;
}

Json::Json(Object value) : value_(std::move(value)) {}

std::string_view Json::kind() const {
  static constexpr std::string_view kKinds[] = {"null",           "true or false", "a whole number",
                                                "a whole number", "a number",      "a string",
                                                "a list",         "an object"};
  return kKinds[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  const Object* object = if_object();
  if (object == nullptr) return nullptr;
  const auto found = std::ranges::find(*object, key, &Member::key);
  return found == object->end() ? nullptr : &found->value;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  Object& object = std::get<Object>(value_);
  const auto found = std::ranges::find(object, key, &Member::key);
  if (found == object.end())
    object.push_back({std::string(key), std::move(value)});
  else
    found->value = std::move(value);
  return *this;
}

Json& Json::append(Json value) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  Printer printer(indent);
  printer.print(*this);
  return printer.take();
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

Result<Json> parse_json(std::string_view text, std::string_view where) {
  Builder builder;
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  std::string at(where);
  if (builder.knows_where()) at += ":" + position(text, builder.offset());
  return Error{Errc::kInvalid, at + ": " + builder.message()};
}

}  // namespace aliquot::format
