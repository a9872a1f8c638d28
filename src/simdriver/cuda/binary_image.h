// Reads cubins (ELF) and fat binaries as far as names, parameters and needs of kernels go. Fat
// binaries hold several images; PTX is preferred, else the cubin of the highest architecture. Pure
// but for binary_image_bytes and image_data, which read as much of a program's memory as the
// image's own header says.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.h"
#include "simdriver/cuda/image.h"

namespace aliquot::simdriver {

bool is_binary_image(std::string_view bytes);
Result<CodeImage> read_binary_image(std::string_view bytes);

// Of an image in memory whose length nobody says: by its header; 0: it is text.
std::size_t binary_image_bytes(const void* image);
// Where it begins: behind the wrapper that compilers put before a fat binary.
const void* image_data(const void* image);

}  // namespace aliquot::simdriver
