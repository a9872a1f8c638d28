// How a body hands an operation to a stream: captured or submitted, waited for or not. Under the
// library's lock.
#pragma once

#include "simdriver/cuda/operations.h"

namespace aliquot::simdriver {

enum class Waiting {
  kNot,
  kUntilDone,  // the call returns when the operation has ended; refused during a capture
};

CUresult request(Lock& lock, Stream& stream, Operation operation, Waiting waiting);

// The parameters that a graph node reports for a copy between two addresses.
void describe_line(const Box& box, CUDA_MEMCPY3D& as_given);

}  // namespace aliquot::simdriver
