#include "simdriver/cuda/arrays.h"
#include "simdriver/cuda/operations.h"
namespace aliquot::simdriver {
bool is_capturing(const Stream&) { return false; }
CUresult capture_operation(Stream&, Operation) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult refuse_capture(Stream&) { return CUDA_SUCCESS; }
Array* find_array(CUarray) { return nullptr; }
}  // namespace aliquot::simdriver
