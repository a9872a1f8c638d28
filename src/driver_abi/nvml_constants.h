// NVML's results and numbers as constants, under the names programs know them by.
//
// Both lists are .def files, so that a name can also be printed. Values; no thread rules.
#pragma once

#include "driver_abi/nvml_scalars.h"

#define ALIQUOT_RESULT(name, number) inline constexpr nvmlReturn_t name = number;
#include "driver_abi/nvml_results.def"

#define ALIQUOT_NUMBER(group, name, number) inline constexpr int name = number;
#include "driver_abi/nvml_numbers.def"
