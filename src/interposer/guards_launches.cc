// The launch that goes to several GPUs at once: it passes the gate of each.
#include "interposer/gate.h"
#include "interposer/guards.h"

namespace aliquot::interposer {
namespace {

unsigned gpu_of_stream(CUstream stream) {
  if (tenant().gpu_count() == 1) return 0;
  CUcontext context = nullptr;
  CUdevice device = -1;
  if (real::cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
      real::cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
    return kForeignGpu;
  const CUresult result = real::cuCtxGetDevice(&device);
  real::cuCtxPopCurrent_v2(&context);
  return result == CUDA_SUCCESS ? gpu_of(device) : kForeignGpu;
}

Work work_on(const CUDA_LAUNCH_PARAMS& launch) {
  return kernel_work(launch.function, {launch.grid_x, launch.grid_y, launch.grid_z},
                     {launch.block_x, launch.block_y, launch.block_z}, launch.stream);
}

}  // namespace

namespace guard {

// Each GPU's gate is passed in the order of the list, by a frame of its own. What is promised at
// one gate while another is closed holds nobody up: a window ends without it.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int count,
                                              unsigned int flags) {
  const auto call = [&] {
    return real::cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
  };
  if (launches == nullptr || count > wire::kMaxGpus) return call();
  const auto next = [&](auto&& self, unsigned at) -> CUresult {
    if (at == count) return call();
    const unsigned gpu = gpu_of_stream(launches[at].stream);
    const CUresult result = pass(gpu, work_on(launches[at]), [&] { return self(self, at + 1); });
    if (result == CUDA_SUCCESS && gpu < wire::kMaxGpus) count_launch(gpu);
    return result;
  };
  return next(next, 0);
}

}  // namespace guard
}  // namespace aliquot::interposer
