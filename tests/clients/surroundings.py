"""Where a check runs: bare on a simulated a100x8, or in a share of one of its GPUs; with which driver.
run_client.sh says so by ALIQUOT_TEST_SHARE_BYTES and ALIQUOT_TEST_CUDA. And the PTX that the checks
send."""
import os

BARE_BYTES = 84974239744  # of an A100, by the driver; in the model's file
share_bytes = int(os.environ.get("ALIQUOT_TEST_SHARE_BYTES", "0"))
in_share = share_bytes != 0
gpus = 1 if in_share else 8
driver_total = share_bytes or BARE_BYTES
nvml_total = share_bytes or 85899345920
cuda = os.environ.get("ALIQUOT_TEST_CUDA") or "13.0"
cuda_number = sum(int(part) * size for part, size in zip(cuda.split("."), (1000, 10)))
driver = {"11.8": "520.61.05", "12.4": "550.54.15", "12.9": "575.57.08", "13.0": "580.65.06"}[cuda]
where = f"CUDA {cuda}, {'in a share' if in_share else 'bare'}"

# Kernels that the simulated machine computes (spin: that take the time asked for). The last one is
# unknown to it: only timed.
PTX = b""".version 7.0
.target sm_50
.address_size 64
.visible .entry aliquot_spin(.param .u64 nanoseconds) { ret; }
.visible .entry aliquot_fill(.param .u64 to, .param .u64 words, .param .u32 value) { ret; }
.visible .entry aliquot_add(.param .u64 to, .param .u64 a, .param .u64 b, .param .u64 words) { ret; }
.visible .entry aliquot_checksum(.param .u64 from, .param .u64 words, .param .u64 to) { ret; }
.visible .entry scale(.param .u64 to, .param .f32 by)
.maxntid 256, 1, 1
{
  .reg .b32 %r<9>;
  .shared .align 4 .b8 tile[2048];
  ret;
}
"""
