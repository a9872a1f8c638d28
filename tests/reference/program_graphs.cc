// Steps with graphs: captured, launched again and again, with memory of their own, and captures
// that fail.
#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {

void Program::step_graph() {
  if (streams_.empty()) return;
  const CUstream stream = any(streams_).handle;
  expect("cuStreamBeginCapture", CUDA_SUCCESS,
         CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  std::vector<Effect> nodes;
  const auto keep = [&](Effect effect) { nodes.push_back(std::move(effect)); };
  for (std::uint64_t i = up_to(6); i > 0; --i) any_work_on(stream, keep);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  expect("cuStreamIsCapturing", CUDA_SUCCESS, CU(cuStreamIsCapturing)(stream, &status));
  expect_number("the capture", CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
  CUgraph graph = nullptr;
  expect("cuStreamEndCapture", CUDA_SUCCESS, CU(cuStreamEndCapture)(stream, &graph));
  size_t count = 0;
  expect("cuGraphGetNodes", CUDA_SUCCESS, CU(cuGraphGetNodes)(graph, nullptr, &count));
  expect_number("nodes", nodes.size(), count);
  expect("cuGraphGetEdges", CUDA_SUCCESS, CU(cuGraphGetEdges)(graph, nullptr, nullptr, &count));
  expect_number("edges", nodes.empty() ? 0 : nodes.size() - 1, count);
  CUgraphExec executable = nullptr;
  expect("cuGraphInstantiate", CUDA_SUCCESS,
         CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  for (std::uint64_t i = up_to(3); i > 0; --i) {
    const CUstream where = any(streams_).handle;
    expect("cuGraphLaunch", CUDA_SUCCESS, CU(cuGraphLaunch)(executable, where));
    for (const Effect& node : nodes) node();
    expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(where));
  }
  expect("cuGraphExecDestroy", CUDA_SUCCESS, CU(cuGraphExecDestroy)(executable));
  expect("cuGraphDestroy", CUDA_SUCCESS, CU(cuGraphDestroy)(graph));
  expect("cuGraphDestroy(again)", CUDA_ERROR_INVALID_VALUE, CU(cuGraphDestroy)(graph));
}

// A graph that takes memory, uses it and gives it back.
void Program::step_graph_memory() {
  if (streams_.empty()) return;
  const CUstream stream = any(streams_).handle;
  const Bytes bytes = 1 + up_to(plan_.total_bytes / 4);
  CU(cuCtxSetCurrent)(contexts_[0].handle);
  expect("cuStreamBeginCapture", CUDA_SUCCESS,
         CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr address = 0;
  expect("cuMemAllocAsync(captured)", CUDA_SUCCESS, CU(cuMemAllocAsync)(&address, bytes, stream));
  expect("cuMemsetD8Async(captured)", CUDA_SUCCESS, CU(cuMemsetD8Async)(address, 7, 1, stream));
  expect("cuMemFreeAsync(captured)", CUDA_SUCCESS, CU(cuMemFreeAsync)(address, stream));
  CUgraph graph = nullptr;
  expect("cuStreamEndCapture", CUDA_SUCCESS, CU(cuStreamEndCapture)(stream, &graph));
  CUgraphExec executable = nullptr;
  expect("cuGraphInstantiate", CUDA_SUCCESS,
         CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  // Nothing was taken yet.
  check_first_gpu();
  Id id = -1;
  const CUresult expected = model_.graph(0, bytes, id);
  expect("cuGraphLaunch", expected, CU(cuGraphLaunch)(executable, stream));
  expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(stream));
  if (id >= 0) model_.release(id);
  expect("cuGraphExecDestroy", CUDA_SUCCESS, CU(cuGraphExecDestroy)(executable));
  expect("cuGraphDestroy", CUDA_SUCCESS, CU(cuGraphDestroy)(graph));
  check_first_gpu();
  CU(cuCtxSetCurrent)(contexts_[current_].handle);
}

// What must not happen during a capture breaks it.
void Program::step_broken_capture() {
  if (streams_.empty()) return;
  const CUstream stream = any(streams_).handle;
  const bool relaxed = one_in(2);
  expect("cuStreamBeginCapture", CUDA_SUCCESS,
         CU(cuStreamBeginCapture_v2)(
             stream, relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL));
  expect("cuStreamBeginCapture(again)", CUDA_ERROR_ILLEGAL_STATE,
         CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  bool broken = false;
  if (one_in(2)) {
    broken = true;
    expect("cuStreamSynchronize(capturing)", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           CU(cuStreamSynchronize)(stream));
  } else {
    Id id = -1;
    CUdeviceptr address = 0;
    broken = !relaxed;
    const CUresult expected =
        broken ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : model_.linear(current(), 4096, id);
    expect("cuMemAlloc(capturing)", expected, CU(cuMemAlloc_v2)(&address, 4096));
    if (id >= 0) addresses_[id] = address;
  }
  CUgraph graph = nullptr;
  expect("cuStreamEndCapture", broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
         CU(cuStreamEndCapture)(stream, &graph));
  expect_number("a graph", broken ? 0 : 1, graph == nullptr ? 0 : 1);
  if (graph != nullptr) expect("cuGraphDestroy", CUDA_SUCCESS, CU(cuGraphDestroy)(graph));
  expect("cuStreamEndCapture(again)", CUDA_ERROR_ILLEGAL_STATE,
         CU(cuStreamEndCapture)(stream, &graph));
}

}  // namespace aliquot::reference
