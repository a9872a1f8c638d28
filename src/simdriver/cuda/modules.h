// Loaded code: modules of a context and libraries of the process, and the functions in them. Under
// the library's lock.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "simdriver/cuda/image.h"
#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

struct Module;

// A launch that was found to be within the limits of device and kernel.
struct CheckedLaunch {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;
  int shared_limit = 0;
  bool cooperative = false;
  bool operator==(const CheckedLaunch&) const = default;
};

// What a CUfunction points to.
struct Function {
  Module* module = nullptr;
  const KernelImage* image = nullptr;
  std::uint64_t block_ns = 0;  // how long one block runs
  int max_dynamic_shared_bytes = 49152;
  int carveout = -1;
  // The last launch: programs launch the same shape again and again.
  CheckedLaunch checked;
  int resident_blocks = 0;        // of `checked` on a multiprocessor; 0: none was launched
  std::map<int, int> attributes;  // others that were set
  // The oldest way to launch: parameters and shape are set beforehand.
  std::vector<std::byte> legacy_arguments;
  unsigned legacy_block[3] = {1, 1, 1};
  unsigned legacy_shared_bytes = 0;
};

struct Variable {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool managed = false;
};

struct Module {
  Context* context = nullptr;
  std::shared_ptr<const CodeImage> image;
  std::map<std::string, Function*> functions;
  std::map<std::string, Variable> variables;
  bool of_library = false;
};

struct Kernel;

// What a CUlibrary points to: code that becomes a module in each context that uses it.
struct CodeLibrary {
  std::shared_ptr<const CodeImage> image;
  std::map<std::string, Kernel*> kernels;
  std::map<Context*, Module*> modules;
};

// What a CUkernel points to.
struct Kernel {
  CodeLibrary* library = nullptr;
  const KernelImage* image = nullptr;
  std::map<std::pair<int, int>, int> attributes;  // (attribute, device) -> value
};

struct LoadedCode {
  Registry<Module> modules;
  Registry<Function> functions;
  Registry<CodeLibrary> libraries;
  Registry<Kernel> kernels;
};
LoadedCode& loaded_code();

// Reads an image of any kind that cuModuleLoadData takes. `log` gets the reader's complaint.
// `appendix` goes behind text.
CUresult read_image(const void* image, const std::string& appendix,
                    std::shared_ptr<const CodeImage>& read, std::string& log);
// The same for bytes of known length (files).
CUresult read_image_bytes(std::string_view bytes, std::shared_ptr<const CodeImage>& read,
                          std::string& log);

CUresult load_module(Context& context, std::shared_ptr<const CodeImage> image, Module*& module);
void unload_module(Module& module);
void free_modules(Context& context);
// The function of that name; nullptr: the image has none.
Function* function_of(Module& module, const std::string& name);
// The library's module in the context, loaded if need be.
CUresult module_of(CodeLibrary& library, Context& context, Module*& module);
// A handle that is a function, or a kernel: then its function in the context.
CUresult resolve_function(CUfunction handle, Context& context, Function*& function);
// A function or kernel whose image is asked for only.
const KernelImage* image_of(const void* handle);

// Resident blocks of a multiprocessor (CUDA occupancy calculation: threads, registers, shared
// memory, slots).
int blocks_per_multiprocessor(const DeviceView& device, const KernelImage& kernel, int threads,
                              std::uint64_t dynamic_shared_bytes);

}  // namespace aliquot::simdriver
