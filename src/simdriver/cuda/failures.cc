#include "simdriver/cuda/failures.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string>

namespace aliquot::simdriver {
namespace {

template <typename T>
bool number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

struct Countdown {
  std::string symbol;
  std::uint32_t left = 0;
  CUresult result = 0;
};

struct Failures {
  std::mutex mutex;
  std::vector<Countdown> from_environment;
  std::vector<Countdown> from_server;
  std::atomic<std::uint32_t> seen_generation = 0;
  bool any_from_environment = false;
};

Failures& failures() {
  static Failures* const instance = [] {
    auto* made = new Failures;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    if (const char* text = std::getenv("ALIQUOT_SIM_FAIL")) {
      for (const Failure& failure : parse_failures(text)) {
        made->from_environment.push_back(
            {std::string(failure.symbol), failure.nth, failure.result});
      }
    }
    made->any_from_environment = !made->from_environment.empty();
    return made;
  }();
  return *instance;
}

// The page changes under us: copied until a copy fell between two changes.
void take_from_page(const MachinePage& page, Failures& all) {
  for (int tries = 0; tries < 100; ++tries) {
    const std::uint32_t before = page.generation.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    std::vector<Countdown> copy;
    for (const MachinePage::Failure& slot : page.failures) {
      if (slot.nth == 0) continue;
      copy.push_back({std::string(slot.symbol.data()), slot.nth, slot.result});
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (page.generation.load(std::memory_order_relaxed) != before) continue;
    all.from_server = std::move(copy);
    all.seen_generation = before;
    return;
  }
}

CUresult count(std::vector<Countdown>& list, std::string_view symbol) {
  for (Countdown& entry : list) {
    if (entry.symbol != symbol || entry.left == 0) continue;
    if (--entry.left == 0) return entry.result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

std::vector<Failure> parse_failures(std::string_view text) {
  std::vector<Failure> found;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t colon = entry.find(':');
    const std::size_t equals = entry.find('=');
    if (colon == 0 || colon == std::string_view::npos || equals == std::string_view::npos ||
        equals < colon) {
      continue;
    }
    Failure failure;
    failure.symbol = entry.substr(0, colon);
    if (!number(entry.substr(colon + 1, equals - colon - 1), failure.nth) || failure.nth == 0 ||
        !number(entry.substr(equals + 1), failure.result)) {
      continue;
    }
    found.push_back(failure);
  }
  return found;
}

[[gnu::hot]] CUresult injected_failure(std::string_view symbol, const MachinePage* page) {
  Failures& all = failures();
  const std::uint32_t generation =
      page == nullptr ? 0 : page->generation.load(std::memory_order_acquire);
  // Nothing was ever ordered: two loads, no lock.
  if (generation == 0 && !all.any_from_environment) return CUDA_SUCCESS;
  const std::lock_guard lock(all.mutex);
  if (generation != all.seen_generation) take_from_page(*page, all);
  if (const CUresult result = count(all.from_environment, symbol)) return result;
  return count(all.from_server, symbol);
}

}  // namespace aliquot::simdriver
