// One block of the LZ4 format (its public block description), decompressed. Pure; any input.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace aliquot::simdriver {

// Nothing: not a block that gives exactly `full_bytes`.
std::optional<std::string> lz4_block(std::string_view block, std::size_t full_bytes);

}  // namespace aliquot::simdriver
