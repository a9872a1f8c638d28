#include "simdriver/machine_text.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace aliquot::simdriver {
namespace {

template <typename E>
struct Word {
  E value;
  const char* text;
};

constexpr std::array<Word<Brand>, 3> kBrands{
    {{Brand::kTesla, "tesla"}, {Brand::kNvidia, "nvidia"}, {Brand::kGeforceRtx, "geforce-rtx"}}};
constexpr std::array<Word<Architecture>, 6> kArchitectures{
    {{Architecture::kVolta, "volta"},
     {Architecture::kTuring, "turing"},
     {Architecture::kAmpere, "ampere"},
     {Architecture::kAda, "ada"},
     {Architecture::kHopper, "hopper"},
     {Architecture::kBlackwell, "blackwell"}}};
constexpr std::array<Word<PciePath>, 6> kPaths{{{PciePath::kSelf, "X"},
                                                {PciePath::kPix, "PIX"},
                                                {PciePath::kPxb, "PXB"},
                                                {PciePath::kPhb, "PHB"},
                                                {PciePath::kNode, "NODE"},
                                                {PciePath::kSys, "SYS"}}};

template <typename Words, typename E>
std::string text_in(const Words& words, E value) {
  for (const auto& word : words)
    if (word.value == value) return word.text;
  return "?";
}

template <typename Words, typename E>
bool value_in(const Words& words, std::string_view text, E& value) {
  for (const auto& word : words) {
    if (text != word.text) continue;
    value = word.value;
    return true;
  }
  return false;
}

// The whole of `text` as one number.
template <typename T>
bool number_from(std::string_view text, int base, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, out, base);
  return fault == std::errc{} && stop == end;
}

}  // namespace

std::string to_text(const Hex& hex) {
  std::array<char, 16> out{};
  std::snprintf(out.data(), out.size(), "0x%08x", hex.value);
  return out.data();
}

std::string to_text(Brand brand) { return text_in(kBrands, brand); }
std::string to_text(Architecture architecture) { return text_in(kArchitectures, architecture); }
std::string to_text(PciePath path) { return text_in(kPaths, path); }

std::string to_text(const ComputeCapability& capability) {
  return std::to_string(capability.major) + "." + std::to_string(capability.minor);
}

std::string cuda_text(const DriverVersion& driver) {
  return std::to_string(driver.cuda / 1000) + "." + std::to_string(driver.cuda % 1000 / 10);
}

bool from_text(std::string_view text, Hex hex) {
  return text.starts_with("0x") && number_from(text.substr(2), 16, hex.value);
}

bool from_text(std::string_view text, Brand& brand) { return value_in(kBrands, text, brand); }
bool from_text(std::string_view text, Architecture& architecture) {
  return value_in(kArchitectures, text, architecture);
}
bool from_text(std::string_view text, PciePath& path) { return value_in(kPaths, text, path); }

bool from_text(std::string_view text, ComputeCapability& capability) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && number_from(text.substr(0, dot), 10, capability.major) &&
         number_from(text.substr(dot + 1), 10, capability.minor) && capability.major > 0 &&
         capability.minor >= 0;
}

bool from_text(std::string_view text, PciAddress& address) {
  const std::size_t colon = text.find(':');
  if (colon != 4 && colon != 8) return false;
  const std::string_view rest = text.substr(colon + 1);
  return rest.size() == 7 && rest[2] == ':' && rest.ends_with(".0") &&
         number_from(text.substr(0, colon), 16, address.domain) &&
         number_from(rest.substr(0, 2), 16, address.bus) &&
         number_from(rest.substr(3, 2), 16, address.device);
}

bool from_text(std::string_view text, Uuid& uuid) {
  if (!text.starts_with("GPU-") || text.size() != 40) return false;
  text.remove_prefix(4);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      if (text[0] != '-') return false;
      text.remove_prefix(1);
    }
    if (!number_from(text.substr(0, 2), 16, uuid[i])) return false;
    text.remove_prefix(2);
  }
  return text.empty();
}

}  // namespace aliquot::simdriver
