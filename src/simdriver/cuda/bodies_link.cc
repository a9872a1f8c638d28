// The linker: PTX and cubins in, one image out. What comes out is the PTX that went in, which
// every function that takes an image reads; several inputs are merged entry by entry.
#include <cstring>
#include <string>

#include "common/files.h"
#include "simdriver/cuda/binary_image.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/jit_options.h"
#include "simdriver/cuda/modules.h"
#include "simdriver/cuda/ptx.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

struct LinkState {
  JitOptions options;
  std::string text;    // of all PTX inputs: later ones without their first directives
  std::string binary;  // the only input, when it is a cubin or fat binary
  std::string error_log;
  std::string info_log;
};

Registry<LinkState>& states() {
  static auto* const all = new Registry<LinkState>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

// The second text of a link drops .version, .target and .address_size lines.
std::string without_header(const std::string& text) {
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    const std::size_t word = line.find_first_not_of(" \t");
    const bool header = word != std::string::npos && (line.compare(word, 8, ".version") == 0 ||
                                                      line.compare(word, 7, ".target") == 0 ||
                                                      line.compare(word, 13, ".address_size") == 0);
    if (!header) rest += line;
    at = end;
  }
  return rest;
}

CUresult add(LinkState& state, const std::string& bytes, const char* name) {
  if (is_binary_image(bytes)) {
    state.binary = bytes;
    return CUDA_SUCCESS;
  }
  const std::string text = bytes.c_str();  // up to its first zero
  const auto read = read_ptx(text);
  if (!read) {
    state.error_log += "ptxas application ptx input, " + read.error().message + "\n";
    state.error_log += "ptxas fatal   : Ptx assembly aborted due to errors\n";
    state.options.report(state.error_log, state.info_log);
    return CUDA_ERROR_INVALID_PTX;
  }
  state.text += state.text.empty() ? text : without_header(text);
  state.info_log += std::string("info    : 0 bytes gmem\ninfo    : linked '") +
                    (name != nullptr ? name : "") + "'\n";
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuLinkCreate_v2(unsigned int num_options, CUjit_option* options, void** values,
                             CUlinkState* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  auto state = std::make_unique<LinkState>();
  state->options = JitOptions(num_options, options, values);
  *out = reinterpret_cast<CUlinkState>(states().add(std::move(state)));
  return CUDA_SUCCESS;
}
CUresult sim_cuLinkCreate(unsigned int num_options, CUjit_option* options, void** values,
                          CUlinkState* out) {
  return sim_cuLinkCreate_v2(num_options, options, values, out);
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuLinkAddData_v2(CUlinkState handle, CUjitInputType, void* data, size_t size,
                              const char* name, unsigned int, CUjit_option*, void**) {
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  LinkState* state = states().find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return add(*state, std::string(static_cast<const char*>(data), size), name);
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size,
                           const char* name, unsigned int num, CUjit_option* options,
                           void** values) {
  return sim_cuLinkAddData_v2(state, type, data, size, name, num, options, values);
}

CUresult sim_cuLinkAddFile_v2(CUlinkState handle, CUjitInputType, const char* path, unsigned int,
                              CUjit_option*, void**) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  LinkState* state = states().find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto bytes = aliquot::read_file(path);
  if (!bytes) return CUDA_ERROR_FILE_NOT_FOUND;
  return add(*state, *bytes, path);
}
CUresult sim_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path,
                           unsigned int num, CUjit_option* options, void** values) {
  return sim_cuLinkAddFile_v2(state, type, path, num, options, values);
}

CUresult sim_cuLinkComplete(CUlinkState handle, void** image_out, size_t* size_out) {
  if (image_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  LinkState* state = states().find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::string& image = state->text.empty() ? state->binary : state->text;
  if (image.empty()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!state->text.empty()) state->text += state->options.register_limit();
  state->options.report(state->error_log, state->info_log);
  *image_out = image.data();
  if (size_out != nullptr) *size_out = image.size() + (state->text.empty() ? 0 : 1);
  return CUDA_SUCCESS;
}

CUresult sim_cuLinkDestroy(CUlinkState handle) {
  const Lock lock = hold();
  return states().remove(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // extern "C"
