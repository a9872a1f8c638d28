// What NVML shows of the machine: the GPUs of the lease, in its order, and nothing else.
//
// Handles are the library's own: a program can only get those of leased GPUs, so that calls that
// take one need no translation. Found anew at each nvmlInit, by the grant's UUIDs. Where the lease
// was refused the library is not loaded at all: NVML starts and lists no GPU.
//
// Any thread; no lock is held over a call of the library.
#pragma once

#include "driver_abi/nvml_types.h"

namespace aliquot::interposer::nvml_view {

// One nvmlInit: attaches, loads, and runs `initialise` of the real library (null in its place
// means the library has no such call). One nvmlShutdown undoes one of them.
nvmlReturn_t start(nvmlReturn_t (*initialise)(unsigned flags), unsigned flags);
nvmlReturn_t stop();

bool started();
// Started, and the lease stands: the real library is there. False with started(): nothing to see.
bool leased();

unsigned device_count();
// Null for an index that is not of the lease, or a GPU that the library does not find any more.
nvmlDevice_t device(unsigned gpu);
// The lease's index of a handle, or -1.
int gpu_of(nvmlDevice_t device);
inline bool is_leased(nvmlDevice_t device) { return gpu_of(device) >= 0; }

// For lookups: what the library found, if the lease has it.
nvmlReturn_t only_if_leased(nvmlReturn_t result, nvmlDevice_t found, nvmlDevice_t* out);

}  // namespace aliquot::interposer::nvml_view
