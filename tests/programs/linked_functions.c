// Every entry point of the driver by its name, as a program or a plugin has it that is linked with
// libcuda.so.1; null: the driver lacks it.
#include <string.h>

typedef int (*Function)();

#define ALIQUOT_ENTRY(symbol, ...) int symbol() __attribute__((weak));
#include "driver_abi/cuda_entry_points.def"

Function linked_function(const char* name) {
  static const struct {
    const char* name;
    Function function;
  } kLinked[] = {
#define ALIQUOT_ENTRY(symbol, ...) {#symbol, symbol},
#include "driver_abi/cuda_entry_points.def"
  };
  for (size_t i = 0; i < sizeof kLinked / sizeof *kLinked; ++i)
    if (!strcmp(kLinked[i].name, name)) return kLinked[i].function;
  return NULL;
}
