// Starting and stopping NVML, its error texts, and the table that nvidia-smi asks for.
#include "interposer/inside.h"
#include "interposer/nvml_guards.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer::nvml_guard {

nvmlReturn_t nvmlInit() {
  return nvml_view::start([](unsigned) { return real::nvmlInit(); }, 0);
}
nvmlReturn_t nvmlInit_v2() {
  return nvml_view::start([](unsigned) { return real::nvmlInit_v2(); }, 0);
}
nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  return nvml_view::start(&real::nvmlInitWithFlags, flags);
}
nvmlReturn_t nvmlShutdown() { return nvml_view::stop(); }

// Asked before nvmlInit and after its failure, too: then our own words must do.
const char* nvmlErrorString(nvmlReturn_t result) {
  if (nvml_view::leased() && has(driver_abi::Nvml::nvmlErrorString))
    return real::nvmlErrorString(result);
  switch (result) {
#define ALIQUOT_RESULT(name, number) \
  case number:                       \
    return #name;
#include "driver_abi/nvml_results.def"
    default:
      break;
  }
  return "NVML_ERROR_UNKNOWN";
}

}  // namespace aliquot::interposer::nvml_guard
