#include "simdriver/cuda/builtin_kernels.h"

namespace aliquot::simdriver {

const char kBuiltinPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry aliquot_spin(.param .u64 nanoseconds) { ret; }
.visible .entry aliquot_fill(.param .u64 to, .param .u64 words, .param .u32 value) { ret; }
.visible .entry aliquot_add(.param .u64 to, .param .u64 a, .param .u64 b, .param .u64 words)
{ ret; }
.visible .entry aliquot_checksum(.param .u64 from, .param .u64 words, .param .u64 to) { ret; }
.visible .entry aliquot_verify(.param .u64 from, .param .u64 words, .param .u32 value,
                               .param .u64 to) { ret; }
)";

}  // namespace aliquot::simdriver
