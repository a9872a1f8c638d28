// Modules and libraries: estimated by the size of their image.
//
// The driver does not say what a module takes on the device, and free memory before and after would
// count what neighbours do meanwhile. The image holds the code and the initialised data, which is
// the most of it; zero-initialised variables of a module are not in it and show as unaccounted.
// A library belongs to no context: it is charged once, to the current GPU, else to the first one.
#include "interposer/contexts.h"
#include "interposer/guards.h"
#include "interposer/image_size.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

template <class Handle, class Call, class Unload>
CUresult load_image(const Place& place, Handle* out, std::uint64_t bytes, Call call,
                    Unload unload) {
  Reservation reservation(place.gpu, Kind::kModule, round_up(bytes, kLinearGranule));
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  Handle made = nullptr;
  const CUresult result = call(out != nullptr ? &made : nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (!keep(held_objects(), reservation, name_of(made), place.context)) {
    unload(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = made;
  return result;
}

template <class Call>
CUresult load_module(CUmodule* out, std::uint64_t bytes, Call call) {
  const Place place = current_place();
  if (place.result != CUDA_SUCCESS) return place.result;
  if (place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  return load_image(place, out, bytes, call, [](CUmodule made) { real::cuModuleUnload(made); });
}

template <class Call>
CUresult load_library(CUlibrary* out, std::uint64_t bytes, Call call) {
  Place place = current_place();
  if (place.result != CUDA_SUCCESS) place.gpu = 0;
  if (place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  place.context = 0;
  return load_image(place, out, bytes, call, [](CUlibrary made) { real::cuLibraryUnload(made); });
}

template <class Handle, class Call>
CUresult unload(Handle handle, Call call) {
  const Held entry = held_objects().take(name_of(handle));
  const CUresult result = call();
  if (result == CUDA_SUCCESS)
    let_go(entry);
  else
    put_back(held_objects(), entry);
  return result;
}

}  // namespace

namespace guard {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return load_module(module, file_bytes(path),
                     [&](CUmodule* at) { return real::cuModuleLoad(at, path); });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module(module, image_bytes(image),
                     [&](CUmodule* at) { return real::cuModuleLoadData(at, image); });
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int num_options,
                            CUjit_option* options, void** option_values) {
  return load_module(module, image_bytes(image), [&](CUmodule* at) {
    return real::cuModuleLoadDataEx(at, image, num_options, options, option_values);
  });
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fat_cubin) {
  return load_module(module, image_bytes(fat_cubin),
                     [&](CUmodule* at) { return real::cuModuleLoadFatBinary(at, fat_cubin); });
}
CUresult cuModuleUnload(CUmodule module) {
  return unload(module, [&] { return real::cuModuleUnload(module); });
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_options_values, unsigned int num_jit_options,
                           CUlibraryOption* library_options, void** library_option_values,
                           unsigned int num_library_options) {
  return load_library(library, image_bytes(code), [&](CUlibrary* at) {
    return real::cuLibraryLoadData(at, code, jit_options, jit_options_values, num_jit_options,
                                   library_options, library_option_values, num_library_options);
  });
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                               void** jit_options_values, unsigned int num_jit_options,
                               CUlibraryOption* library_options, void** library_option_values,
                               unsigned int num_library_options) {
  return load_library(library, file_bytes(path), [&](CUlibrary* at) {
    return real::cuLibraryLoadFromFile(at, path, jit_options, jit_options_values, num_jit_options,
                                       library_options, library_option_values, num_library_options);
  });
}
CUresult cuLibraryUnload(CUlibrary library) {
  return unload(library, [&] { return real::cuLibraryUnload(library); });
}

}  // namespace guard
}  // namespace aliquot::interposer
