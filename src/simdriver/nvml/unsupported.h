// Why a row of the NVML table has no body: for the documentation, and a test that every such row
// has its reason. Any thread.
#pragma once

#include <string_view>

namespace aliquot::simdriver::nvml {

// Empty where nothing is known of the symbol.
std::string_view why_unsupported(std::string_view symbol);

}  // namespace aliquot::simdriver::nvml
