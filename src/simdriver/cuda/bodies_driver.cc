// The driver itself: initialisation, versions, results as text, look-ups of entry points.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "driver_abi/cuda_table.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/entries.h"
#include "simdriver/cuda/library.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

namespace abi = aliquot::driver_abi;

struct ResultName {
  CUresult result;
  const char* name;
};
constexpr auto kResultNames = std::to_array<ResultName>({
#define ALIQUOT_RESULT(name, number) {number, #name},
#include "driver_abi/cuda_results.def"
});

const char* name_of(CUresult result) {
  const auto found = std::ranges::find(kResultNames, result, &ResultName::result);
  return found == kResultNames.end() ? nullptr : found->name;
}

// "CUDA_ERROR_OUT_OF_MEMORY" -> "out of memory".
std::string words_of(const std::string& name) {
  if (name == "CUDA_SUCCESS") return "no error";
  std::string words = name.substr(name.find("ERROR_") + 6);
  for (char& c : words) c = c == '_' ? ' ' : static_cast<char>(std::tolower(c));
  return words;
}

// The driver's own function as the process's dlsym finds it: a preloaded library that answers with
// its own has then put itself behind itself.
void* found_by_dlsym(Lock& lock, std::string_view symbol) {
  static void* const own = [] {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<const void*>(&sim_cuInit), &info) != 0;
    return known ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  }();
  lock.unlock();  // what answers may call the driver
  void* found = own == nullptr ? nullptr : dlsym(own, std::string(symbol).c_str());
  lock.lock();
  return found;
}

CUresult find_entry(const char* symbol, void** function, int version, std::uint64_t flags,
                    abi::ProcAddressStatus& status) {
  *function = nullptr;
  status = abi::ProcAddressStatus::kUnknown;
  Lock lock = hold();
  const int driver = library().cuda_version();
  const bool streams = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const abi::ProcAddressAnswer answer = abi::symbol_for({symbol, version, streams}, driver);
  status = answer.status;
  if (answer.status != abi::ProcAddressStatus::kFound) return CUDA_ERROR_NOT_FOUND;
  *function = exported_function(answer.id);
  const MachinePage* page = library().machine_page();
  if (page != nullptr && page->through_dlsym.load(std::memory_order_relaxed) != 0) {
    void* found = found_by_dlsym(lock, abi::kCudaEntries[abi::index_of(answer.id)].symbol);
    if (found != nullptr) *function = found;
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  return library().initialise();
}

CUresult sim_cuDriverGetVersion(int* driver_version) {
  if (driver_version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  *driver_version = library().cuda_version();
  return CUDA_SUCCESS;
}

CUresult sim_cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = name_of(error);
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  static const auto* const texts = [] {
    auto* made = new std::array<std::string, kResultNames.size()>;  // NOLINT: lives for ever
    for (std::size_t i = 0; i < made->size(); ++i) (*made)[i] = words_of(kResultNames[i].name);
    return made;
  }();
  const auto found = std::ranges::find(kResultNames, error, &ResultName::result);
  if (found == kResultNames.end()) return CUDA_ERROR_INVALID_VALUE;
  *text = (*texts)[static_cast<std::size_t>(found - kResultNames.begin())].c_str();
  return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(const char* symbol, void** function, int cuda_version,
                              uint64_t flags) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  abi::ProcAddressStatus status{};
  return find_entry(symbol, function, cuda_version, flags, status);
}

// With a place for the status the call succeeds for a name that is there but not in that version.
CUresult sim_cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                                 uint64_t flags, CUdriverProcAddressQueryResult* symbol_status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  abi::ProcAddressStatus status{};
  const CUresult result = find_entry(symbol, function, cuda_version, flags, status);
  if (symbol_status != nullptr) {
    *symbol_status = status == abi::ProcAddressStatus::kFound ? CU_GET_PROC_ADDRESS_SUCCESS
                     : status == abi::ProcAddressStatus::kVersionTooLow
                         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return result;
}

// Private tables are how NVIDIA's runtime library proves a driver genuine. This one is not, and
// says so instead of answering.
CUresult sim_cuGetExportTable(const void** export_table, const CUuuid*) {
  static std::once_flag once;
  std::call_once(once, [] {
    say(Say::kAlways,
        "a library asks for NVIDIA's private tables, which a simulated driver does not have; "
        "programs built on NVIDIA's runtime library need a real GPU");
  });
  if (export_table != nullptr) *export_table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
