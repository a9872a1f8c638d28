// Arrays and mipmapped arrays, made and ended. Under the library's lock.
#pragma once

#include "simdriver/cuda/arrays.h"

namespace aliquot::simdriver {

Mipmap* find_mipmap(CUmipmappedArray handle);

CUresult create_array(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, CUarray& handle);
CUresult destroy_array(CUarray handle);
CUresult create_mipmap(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels,
                       CUmipmappedArray& handle);
CUresult destroy_mipmap(CUmipmappedArray handle);

}  // namespace aliquot::simdriver
