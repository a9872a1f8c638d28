// What a program's static constructors register: images of device code, the kernels and variables
// in them, by the address that stands for each on the host.
//
// An image is loaded into the driver at the first use of anything in it. Any thread; registration
// runs before main and in dlopen.
#pragma once

#include <string>

#include "driver_abi/cuda_types.h"

namespace aliquot::runtime {

struct Image;  // one registered wrapper

Image* add_image(const void* data);
// The driver forgets its code; its kernels and variables are no longer known.
void remove_image(Image* image);
void add_kernel(Image* image, const void* host, std::string name);
void add_variable(Image* image, const void* host, std::string name);
// `place` is where the program reads the variable's address.
void add_managed(Image* image, void** place, std::string name);

// CUDA_ERROR_INVALID_VALUE: nothing is registered at that address.
CUresult kernel_at(const void* host, CUkernel& kernel);
CUresult variable_at(const void* host, CUdeviceptr& address, std::size_t& bytes);
// Writes the addresses of the image's managed variables to their places.
CUresult place_managed(Image* image);

}  // namespace aliquot::runtime
