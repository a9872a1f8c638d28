// How large a module image is. The driver takes a bare pointer, so the image itself must say: an
// ELF file by its section table, a fat binary by its header, PTX by its end. Pure; any thread.
#pragma once

#include <cstdint>

namespace aliquot::interposer {

// 0 where the image is of no known form. Reads only what the driver would read too.
std::uint64_t image_bytes(const void* image);
// The size of a file; 0 if it cannot be read.
std::uint64_t file_bytes(const char* path);

}  // namespace aliquot::interposer
