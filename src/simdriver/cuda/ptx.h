// Reads the declarations of PTX text (PTX ISA, module and kernel directives); instructions are
// looked over, not understood. Pure; any input.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "simdriver/cuda/image.h"

namespace aliquot::simdriver {

// The error's message reads like an assembler's: "line 3: ...".
Result<CodeImage> read_ptx(std::string_view text);

}  // namespace aliquot::simdriver
