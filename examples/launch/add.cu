// Adds two arrays on the GPU, by a launch and by a captured graph, and checks the sums.
//
// On a simulated machine kernels take time but are not computed, except those that it knows by name:
// aliquot_add is one, with these parameters. On a real GPU the code below runs.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda_launch.h"  // with the CUDA tool kit: cuda_runtime.h

extern "C" __global__ void aliquot_add(unsigned* to, const unsigned* a, const unsigned* b,
                                       unsigned long long words) {
  const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) to[i] = a[i] + b[i];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr unsigned kWords = 1 << 16;
  constexpr size_t kBytes = kWords * sizeof(unsigned);
  unsigned *a, *b, *sum;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaMallocManaged(reinterpret_cast<void**>(&a), kBytes), "managed memory");
  check(cudaStreamAttachMemAsync(stream, a), "attach");
  check(cudaMalloc(reinterpret_cast<void**>(&b), kBytes), "memory");
  check(cudaMalloc(reinterpret_cast<void**>(&sum), kBytes), "memory");
  for (unsigned i = 0; i < kWords; ++i) a[i] = i;
  const std::vector<unsigned> tens(kWords, 10);
  check(cudaMemcpyAsync(b, tens.data(), kBytes, cudaMemcpyHostToDevice, stream), "copy");

  aliquot_add<<<kWords / 256, 256, 0, stream>>>(sum, a, b, kWords);
  check(cudaGetLastError(), "launch");

  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  aliquot_add<<<kWords / 256, 256, 0, stream>>>(sum, sum, b, kWords);
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&ready, graph), "graph");
  for (int i = 0; i < 3; ++i) check(cudaGraphLaunch(ready, stream), "graph launch");

  std::vector<unsigned> out(kWords);
  check(cudaMemcpyAsync(out.data(), sum, kBytes, cudaMemcpyDeviceToHost, stream), "copy back");
  check(cudaStreamSynchronize(stream), "wait");
  for (unsigned i = 0; i < kWords; ++i) {
    if (out[i] == i + 40) continue;
    std::fprintf(stderr, "sum %u is %u, not %u\n", i, out[i], i + 40);
    return 1;
  }
  std::printf("%u sums as expected, after a launch and three of a graph\n", kWords);
}
