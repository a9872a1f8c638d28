// A copy of a simulated driver library as an older version would have it: names that came later
// are absent, whoever looks them up. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "common/result.h"

namespace aliquot::simdriver {

// Copies `from` to `to` without the exported functions that `absent` names. An ELF file of 64 bits.
Status copy_library(const std::filesystem::path& from, const std::filesystem::path& to,
                    const std::function<bool(std::string_view symbol)>& absent);

// Whether a driver of that CUDA version lacks the function.
bool absent_in_version(std::string_view symbol, int cuda_version);

}  // namespace aliquot::simdriver
