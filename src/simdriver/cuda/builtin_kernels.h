// Kernels that the simulated driver really computes, by name, so that programs can check data
// through copies, shares and swaps. Their declarations are kBuiltinPtx; a program loads that text,
// or any PTX that declares entries of these names and parameters:
//
//   aliquot_spin(u64 nanoseconds)                        one block that runs for so long
//   aliquot_fill(u64 address, u64 words, u32 value)      words of 32 bits
//   aliquot_add(u64 to, u64 a, u64 b, u64 words)         to[i] = a[i] + b[i]
//   aliquot_checksum(u64 address, u64 words, u64 to)     a 64-bit sum: each word times its place +
//   1 aliquot_verify(u64 address, u64 words, u32 value, u64 to)   counts words that differ, 64 bits
//
// Under the library's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "simdriver/cuda/image.h"

namespace aliquot::simdriver {

extern const char kBuiltinPtx[];

struct BuiltinCall {
  std::span<const std::byte> arguments;
};

struct BuiltinKernel {
  std::string_view name;
  // What it takes of the device: `grid` blocks were launched.
  std::uint64_t (*blocks)(const BuiltinCall& call, std::uint64_t grid);
  std::uint64_t (*block_ns)(const BuiltinCall& call);
  // False: the host has no memory for the result, or an address is wrong. nullptr: it only runs.
  bool (*compute)(const BuiltinCall& call);
};

// nullptr: a kernel like any other.
const BuiltinKernel* builtin_kernel(std::string_view name);

}  // namespace aliquot::simdriver
