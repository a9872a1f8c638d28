// The options that callers of the assembler and linker pass as two arrays: only their log buffers
// mean something here. Values; a call's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "driver_abi/cuda_types.h"

namespace aliquot::simdriver {

class JitOptions {
 public:
  JitOptions() = default;
  JitOptions(unsigned count, CUjit_option* options, void** values) {
    for (unsigned i = 0; options != nullptr && values != nullptr && i < count; ++i) {
      const auto number = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(values[i]));
      switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
          info_ = static_cast<char*>(values[i]);
          break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
          info_size_ = number;
          info_used_ = &values[i];
          break;
        case CU_JIT_ERROR_LOG_BUFFER:
          error_ = static_cast<char*>(values[i]);
          break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
          error_size_ = number;
          error_used_ = &values[i];
          break;
        case CU_JIT_MAX_REGISTERS:
          most_registers_ = static_cast<unsigned>(number);
          break;
        case CU_JIT_WALL_TIME: {
          const float none = 0;
          std::memcpy(&values[i], &none, sizeof(none));
          break;
        }
        default:
          break;
      }
    }
  }

  // What the PTX reader takes at the end of a text; empty: no limit was given.
  std::string register_limit() const {
    if (most_registers_ == 0) return "";
    return "\n.pragma \"maxnreg " + std::to_string(most_registers_) + "\";\n";
  }

  // Into the caller's buffers; the sizes become what was written.
  void report(const std::string& error, const std::string& info = "") const {
    write(error_, error_size_, error_used_, error);
    write(info_, info_size_, info_used_, info);
  }

 private:
  static void write(char* buffer, std::size_t size, void** used, const std::string& text) {
    std::size_t length = 0;
    if (buffer != nullptr && size > 0) {
      length = std::min(text.size(), size - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = 0;
    }
    if (used != nullptr) *used = reinterpret_cast<void*>(length);
  }

  unsigned most_registers_ = 0;
  char* info_ = nullptr;
  char* error_ = nullptr;
  std::size_t info_size_ = 0;
  std::size_t error_size_ = 0;
  void** info_used_ = nullptr;
  void** error_used_ = nullptr;
};

}  // namespace aliquot::simdriver
