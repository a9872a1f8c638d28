// Contexts by handle. Under the library's lock.
#pragma once

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

CUcontext handle_of(Context* context);
// nullptr: no such context.
Context* find_context(CUcontext handle);
CUresult context_or_current(CUcontext handle, Context*& context);
// One more use of the device's primary context, which is opened if need be.
CUresult retain_primary(DeviceView& device, Context*& context);

}  // namespace aliquot::simdriver
