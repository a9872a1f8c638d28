// The exported functions by row, for cuGetProcAddress. Any thread.
#pragma once

#include "driver_abi/cuda_table.h"

namespace aliquot::simdriver {

void* exported_function(driver_abi::Cuda id);

}  // namespace aliquot::simdriver
