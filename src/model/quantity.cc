#include "model/quantity.h"

#include <algorithm>
#include <array>
#include <optional>

namespace aliquot::model {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array kUnits{
    Unit{"B", 1},          Unit{"KiB", kKiB},         Unit{"MiB", kMiB},
    Unit{"GiB", kGiB},     Unit{"TiB", 1ull << 40},   Unit{"KB", 1'000},
    Unit{"MB", 1'000'000}, Unit{"GB", 1'000'000'000}, Unit{"TB", 1'000'000'000'000},
};

Error refused(std::string_view what, std::string_view text, std::string_view why) {
  return {Errc::kInvalid,
          std::string(what) + " \"" + std::string(text.substr(0, 64)) + "\": " + std::string(why)};
}

// A decimal number as whole * 10^digits, so that no rounding happens before the unit is applied.
struct Decimal {
  std::uint64_t digits = 0;
  std::uint64_t scale = 1;
  std::string_view rest;
};

std::optional<Decimal> leading_decimal(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  bool any = false;
  bool fraction = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !fraction && any) {
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    // 10^13 * 10^4 still fits; nobody writes more digits and means it.
    if (number.digits > 10'000'000'000'000ull || number.scale > 1'000) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(c - '0');
    if (fraction) number.scale *= 10;
    any = true;
  }
  if (!any || text[at - 1] == '.') return std::nullopt;
  number.rest = text.substr(at);
  return number;
}

Result<std::uint32_t> hundredths(std::string_view what, std::string_view text,
                                 const Decimal& number) {
  const std::uint64_t value = number.digits * 100;
  if (value % number.scale != 0) return refused(what, text, "at most two digits after the point");
  const std::uint64_t result = value / number.scale;
  if (result == 0) return refused(what, text, "must be above 0");
  if (result > kWholeGpu) return refused(what, text, "a GPU has 100%");
  return static_cast<std::uint32_t>(result);
}

constexpr std::string_view kMemoryForms = "write 4GiB, 1.5GiB, 512MB, 25% or unlimited";

}  // namespace

std::uint64_t MemoryQuantity::bytes_of(std::uint64_t physical) const {
  switch (kind) {
    case Kind::kBytes:
      return value;
    case Kind::kPercent:
      return physical / kWholeGpu * value + physical % kWholeGpu * value / kWholeGpu;
    case Kind::kUnlimited:
      break;
  }
  return physical;
}

Result<MemoryQuantity> parse_memory(std::string_view text) {
  using Kind = MemoryQuantity::Kind;
  if (text == "unlimited") return MemoryQuantity{Kind::kUnlimited, 0};
  const auto number = leading_decimal(text);
  if (!number) return refused("memory", text, kMemoryForms);
  if (number->rest == "%") {
    const auto percent = hundredths("memory", text, *number);
    if (!percent) return percent.error();
    return MemoryQuantity{Kind::kPercent, *percent};
  }
  if (number->rest.empty())
    return refused("memory", text, "has no unit; " + std::string(kMemoryForms));
  const auto unit = std::ranges::find(kUnits, number->rest, &Unit::name);
  if (unit == kUnits.end())
    return refused("memory", text,
                   "unknown unit \"" + std::string(number->rest.substr(0, 16)) +
                       "\"; units are KiB MiB GiB TiB KB MB GB TB B %");
  // Divided, not multiplied: kLargestMemory * 10^4 fits in 64 bits, digits * unit need not.
  if (number->digits > kLargestMemory * number->scale / unit->bytes)
    return refused("memory", text, "more than any GPU has");
  const std::uint64_t bytes = number->digits * unit->bytes / number->scale;
  if (bytes == 0) return refused("memory", text, "must be above 0");
  return MemoryQuantity{Kind::kBytes, bytes};
}

Result<std::uint32_t> parse_cores(std::string_view text) {
  const auto number = leading_decimal(text);
  if (!number || (!number->rest.empty() && number->rest != "%"))
    return refused("cores", text, "write a percentage of one GPU, such as 30 or 12.5%");
  return hundredths("cores", text, *number);
}

std::string memory_text(std::uint64_t bytes) {
  constexpr std::array kShown{Unit{"TiB", 1ull << 40}, Unit{"GiB", kGiB}, Unit{"MiB", kMiB},
                              Unit{"KiB", kKiB}};
  const auto* unit = std::ranges::find_if(kShown, [&](const Unit& u) { return bytes >= u.bytes; });
  if (unit == kShown.end()) return std::to_string(bytes) + "B";
  const std::string whole = std::to_string(bytes / unit->bytes);
  if (bytes % unit->bytes == 0) return whole + std::string(unit->name);
  // Hundredths of the unit, rounded down; a last zero that is exact is left out.
  const auto part = static_cast<unsigned>(bytes % unit->bytes * 100 / unit->bytes);
  const bool exact_tenth = bytes % unit->bytes * 10 % unit->bytes == 0;
  std::string digits = std::to_string(part / 10);
  if (!exact_tenth) digits += std::to_string(part % 10);
  return whole + '.' + digits + std::string(unit->name);
}

std::string cores_text(std::uint32_t hundredths) {
  const std::uint32_t whole = hundredths / 100;
  const std::uint32_t part = hundredths % 100;
  std::string text = std::to_string(whole);
  if (part != 0) {
    text += '.';
    text += static_cast<char>('0' + part / 10);
    if (part % 10 != 0) text += static_cast<char>('0' + part % 10);
  }
  return text + '%';
}

}  // namespace aliquot::model
