// Which GPU of the lease a driver's device is. The UUID decides, never an ordinal.
//
// The real driver is initialised with CUDA_VISIBLE_DEVICES naming the leased GPUs by UUID, chosen
// by what the program's own CUDA_VISIBLE_DEVICES says about the lease's GPUs. So the driver itself
// counts only those, in that order, in every call and structure that carries an ordinal, and
// nothing has to be translated. Alternatives and price: docs/adr (devices of a share).
//
// Any thread. gpu_of and current_place ask the driver and hold no lock meanwhile.
#pragma once

#include <cstdint>

#include "driver_abi/cuda_types.h"
#include "interposer/account.h"

namespace aliquot::interposer {

// A device that is not of the lease; calls that would take memory there answer INVALID_DEVICE.
inline constexpr unsigned kForeignGpu = 0xfe;

// The real cuInit under the lease's view of the machine.
CUresult initialise_driver(unsigned flags);

// The grant's GPU behind a driver's ordinal, or kForeignGpu.
unsigned gpu_of(CUdevice device);
// The same for a memory location; host memory is kNoGpu.
unsigned gpu_of(const CUmemLocation& location);
// The driver's ordinal of a grant's GPU, or -1.
CUdevice device_of(unsigned gpu);

// Where a call without a device argument goes: the current context and its GPU.
struct Place {
  CUresult result = 0;  // the driver's error where there is no current context
  unsigned gpu = kForeignGpu;
  std::uint64_t context = 0;
};
Place current_place();

// "0,GPU-xyz" as the driver reads CUDA_VISIBLE_DEVICES, over these UUIDs: what it selects, as a
// list of whole UUIDs; "-1" if nothing. Null `wanted`: all. Reading ends at the first entry that
// names no GPU.
void select_devices(const char* wanted, const wire::Grant& grant, char* out, unsigned out_bytes);

// In the child of a fork: the driver is to be initialised anew.
void forget_devices();

}  // namespace aliquot::interposer
