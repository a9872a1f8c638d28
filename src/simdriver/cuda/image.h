// What a program's device code says of itself: kernels with their parameters and needs, variables.
// Values; read from PTX text (ptx.h), cubins and fat binaries (binary_image.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aliquot::simdriver {

struct KernelParameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  bool operator==(const KernelParameter&) const = default;
};

struct KernelImage {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::uint32_t required_threads = 0;  // 0: any up to max_threads
  std::uint32_t shared_bytes = 0;      // static
  std::uint32_t local_bytes = 0;       // a thread
  std::uint32_t registers = 0;         // a thread; an estimate for PTX
};

struct VariableImage {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t align = 1;
  bool managed = false;
  bool constant = false;
  std::vector<std::byte> initial;  // shorter than bytes: the rest is zero
};

struct CodeImage {
  int target = 0;       // sm_80: 80
  int ptx_version = 0;  // 8.0: 80; 0: none
  std::vector<KernelImage> kernels;
  std::vector<VariableImage> variables;
  std::uint32_t constant_bytes = 0;
  std::uint64_t code_bytes = 0;  // of the whole image; for PTX an estimate of what comes out of it
  const KernelImage* kernel(const std::string& name) const {
    for (const KernelImage& candidate : kernels) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }
};

}  // namespace aliquot::simdriver
