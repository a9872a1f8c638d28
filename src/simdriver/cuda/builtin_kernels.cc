#include "simdriver/cuda/builtin_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kChunkWords = 1u << 18;
// One block's time for the kernels that go over memory: the model's guess, not a measurement.
constexpr std::uint64_t kPassBlockNs = 2'000;

template <typename T>
T argument(const BuiltinCall& call, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= call.arguments.size()) {
    std::memcpy(&value, call.arguments.data() + offset, sizeof(T));
  }
  return value;
}

std::uint64_t u64(const BuiltinCall& call, std::size_t index) {
  return argument<std::uint64_t>(call, index * 8);
}

std::uint64_t as_launched(const BuiltinCall&, std::uint64_t grid) { return grid; }
[[gnu::hot]] std::uint64_t one_block(const BuiltinCall&, std::uint64_t) { return 1; }
std::uint64_t pass_ns(const BuiltinCall&) { return kPassBlockNs; }
[[gnu::hot]] std::uint64_t spin_ns(const BuiltinCall& call) {
  constexpr std::uint64_t kLongest = 3'600'000'000'000;
  return std::min(u64(call, 0), kLongest);
}

// A range of words in device or pinned memory, in pieces.
bool load(std::vector<std::uint32_t>& words, std::uint64_t from, std::uint64_t count) {
  words.resize(count);
  Memory& memory = library().memory();
  if (memory.is_device_address(from)) {
    return memory.load(words.data(), from, count * 4) == CUDA_SUCCESS;
  }
  if (memory.find_host(reinterpret_cast<const void*>(from)) == nullptr) return false;
  std::memcpy(words.data(), reinterpret_cast<const void*>(from), count * 4);
  return true;
}

bool store(std::uint64_t to, const void* from, std::uint64_t bytes) {
  Memory& memory = library().memory();
  if (memory.is_device_address(to)) return memory.store(to, from, bytes) == CUDA_SUCCESS;
  if (memory.find_host(reinterpret_cast<const void*>(to)) == nullptr) return false;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return true;
}

bool fill(const BuiltinCall& call) {
  const std::uint64_t to = u64(call, 0);
  const std::uint64_t words = u64(call, 1);
  const auto value = argument<std::uint32_t>(call, 16);
  Memory& memory = library().memory();
  if (memory.is_device_address(to)) {
    return memory.fill(to, words * 4, {value, 4}) == CUDA_SUCCESS;
  }
  const std::vector<std::uint32_t> copy(words, value);
  return store(to, copy.data(), words * 4);
}

bool add(const BuiltinCall& call) {
  const std::uint64_t words = u64(call, 3);
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  for (std::uint64_t done = 0; done < words; done += kChunkWords) {
    const std::uint64_t part = std::min(kChunkWords, words - done);
    if (!load(a, u64(call, 1) + done * 4, part) || !load(b, u64(call, 2) + done * 4, part)) {
      return false;
    }
    for (std::uint64_t i = 0; i < part; ++i) a[i] += b[i];
    if (!store(u64(call, 0) + done * 4, a.data(), part * 4)) return false;
  }
  return true;
}

// Calls visit(index, word) for each.
template <typename Visit>
bool over_words(std::uint64_t from, std::uint64_t words, Visit visit) {
  std::vector<std::uint32_t> piece;
  for (std::uint64_t done = 0; done < words; done += kChunkWords) {
    const std::uint64_t part = std::min(kChunkWords, words - done);
    if (!load(piece, from + done * 4, part)) return false;
    for (std::uint64_t i = 0; i < part; ++i) visit(done + i, piece[i]);
  }
  return true;
}

bool checksum(const BuiltinCall& call) {
  std::uint64_t sum = 0;
  const bool read = over_words(u64(call, 0), u64(call, 1),
                               [&](std::uint64_t i, std::uint32_t word) { sum += (i + 1) * word; });
  return read && store(u64(call, 2), &sum, sizeof(sum));
}

bool verify(const BuiltinCall& call) {
  const auto value = argument<std::uint32_t>(call, 16);
  std::uint64_t wrong = 0;
  const bool read = over_words(u64(call, 0), u64(call, 1), [&](std::uint64_t, std::uint32_t word) {
    wrong += word != value ? 1 : 0;
  });
  return read && store(u64(call, 3), &wrong, sizeof(wrong));
}

constexpr auto kKernels = std::to_array<BuiltinKernel>({
    {"aliquot_spin", one_block, spin_ns, nullptr},
    {"aliquot_fill", as_launched, pass_ns, fill},
    {"aliquot_add", as_launched, pass_ns, add},
    {"aliquot_checksum", as_launched, pass_ns, checksum},
    {"aliquot_verify", as_launched, pass_ns, verify},
});

}  // namespace

[[gnu::hot]] const BuiltinKernel* builtin_kernel(std::string_view name) {
  if (!name.starts_with("aliquot_")) return nullptr;
  const auto found = std::ranges::find(kKernels, name, &BuiltinKernel::name);
  return found == kKernels.end() ? nullptr : &*found;
}

}  // namespace aliquot::simdriver
