// CPU lists as Linux writes them ("0-23,48-71"). Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "common/result.h"

namespace aliquot::simdriver {

// The numbers in the order written; each below 4096.
Result<std::vector<unsigned>> parse_cpu_list(std::string_view text);

}  // namespace aliquot::simdriver
