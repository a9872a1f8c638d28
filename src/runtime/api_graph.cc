// Stream capture and the graphs that come of it.
#include "runtime/driver.h"

using aliquot::runtime::Driver;
using aliquot::runtime::with_context;

// NOLINTBEGIN(readability-identifier-naming): the names of the CUDA runtime
extern "C" {

CUresult cudaStreamBeginCapture(CUstream stream, int mode) {
  return with_context([&](const Driver& it) {
    return it.cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}
CUresult cudaStreamEndCapture(CUstream stream, CUgraph* graph) {
  return with_context([&](const Driver& it) { return it.cuStreamEndCapture(stream, graph); });
}
// As since CUDA 12.
CUresult cudaGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return with_context(
      [&](const Driver& it) { return it.cuGraphInstantiateWithFlags(executable, graph, flags); });
}
CUresult cudaGraphLaunch(CUgraphExec executable, CUstream stream) {
  return with_context([&](const Driver& it) { return it.cuGraphLaunch(executable, stream); });
}
CUresult cudaGraphExecDestroy(CUgraphExec executable) {
  return with_context([&](const Driver& it) { return it.cuGraphExecDestroy(executable); });
}
CUresult cudaGraphDestroy(CUgraph graph) {
  return with_context([&](const Driver& it) { return it.cuGraphDestroy(graph); });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
