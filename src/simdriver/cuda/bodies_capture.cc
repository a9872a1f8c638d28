// Stream capture.
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/graphs.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult begin(CUstream handle, CUstreamCaptureMode mode, Graph* into, std::vector<Node*> after) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  return begin_capture(*stream, mode, into, std::move(after));
}

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct InfoOut {
  CUstreamCaptureStatus* status = nullptr;
  uint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* num = nullptr;
};

CUresult info(CUstream handle, const InfoOut& out) {
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = refuse_implicit(*stream)) return result;
  *out.status = status_of(*stream);
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  const Capture& capture = *stream->capture;
  const std::vector<Node*>& ends = capture.ends.at(stream);
  if (out.id != nullptr) *out.id = capture.id;
  if (out.graph != nullptr) *out.graph = reinterpret_cast<CUgraph>(capture.graph);
  if (out.dependencies != nullptr) {
    *out.dependencies = reinterpret_cast<const CUgraphNode*>(ends.data());
  }
  if (out.edges != nullptr) *out.edges = nullptr;
  if (out.num != nullptr) *out.num = ends.size();
  return CUDA_SUCCESS;
}

CUresult update(CUstream handle, CUgraphNode* nodes, size_t count, unsigned flags) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<Node*>& ends = stream->capture->ends[stream];
  std::vector<Node*> changed;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) changed = ends;
  for (size_t i = 0; i < count; ++i) {
    Node* node = find_node(nodes[i]);
    if (node == nullptr || node->graph != stream->capture->graph) return CUDA_ERROR_INVALID_VALUE;
    changed.push_back(node);
  }
  ends = std::move(changed);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, nullptr, {});
}
CUresult sim_cuStreamBeginCapture(CUstream stream) {
  return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                         const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                         size_t count, CUstreamCaptureMode mode) {
  std::vector<Node*> after;
  Graph* graph = nullptr;
  {
    const Lock lock = hold();
    graph = find_graph(graph_handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      Node* node = find_node(dependencies[i]);
      if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
      after.push_back(node);
    }
  }
  return begin(handle, mode, graph, std::move(after));
}

CUresult sim_cuStreamEndCapture(CUstream handle, CUgraph* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  Graph* graph = nullptr;
  const CUresult result = end_capture(*stream, graph);
  *out = reinterpret_cast<CUgraph>(graph);
  return result;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return info(handle, {status, nullptr, nullptr, nullptr, nullptr, nullptr});
}
CUresult sim_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, uint64_t* id) {
  return info(handle, {status, id, nullptr, nullptr, nullptr, nullptr});
}
CUresult sim_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, uint64_t* id,
                                       CUgraph* graph, const CUgraphNode** dependencies,
                                       size_t* num) {
  return info(handle, {status, id, graph, dependencies, nullptr, num});
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, uint64_t* id,
                                       CUgraph* graph, const CUgraphNode** dependencies,
                                       const CUgraphEdgeData** edges, size_t* num) {
  return info(handle, {status, id, graph, dependencies, edges, num});
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                               size_t count, unsigned int flags) {
  return update(stream, dependencies, count, flags);
}
CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                                  const CUgraphEdgeData*, size_t count,
                                                  unsigned int flags) {
  return update(stream, dependencies, count, flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::swap(*mode, thread_capture_mode());
  return CUDA_SUCCESS;
}

}  // extern "C"
