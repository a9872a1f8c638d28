#include "simdriver/cpu_list.h"

#include <charconv>
#include <string>

namespace aliquot::simdriver {
namespace {

constexpr unsigned kMostCpus = 4096;

// Reads a number at the start of `text` and takes it off.
bool take_number(std::string_view& text, unsigned& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || out >= kMostCpus) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
  const Error fault{Errc::kInvalid,
                    "CPU list \"" + std::string(text) + "\": expected numbers as in 0-23,48-71"};
  std::vector<unsigned> cpus;
  do {
    unsigned first = 0;
    if (!take_number(text, first)) return fault;
    unsigned last = first;
    if (take_sign(text, '-') && (!take_number(text, last) || last < first)) return fault;
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  } while (take_sign(text, ','));
  if (!text.empty()) return fault;
  return cpus;
}

}  // namespace aliquot::simdriver
