// Stream capture: operations become nodes of a graph instead of work.
#include <algorithm>
#include <utility>

#include "simdriver/cuda/graphs.h"

namespace aliquot::simdriver {
namespace {

std::vector<std::unique_ptr<Capture>>& captures() {
  static auto* const all = new std::vector<std::unique_ptr<Capture>>;  // NOLINT: lives for ever
  return *all;
}

CUresult invalidate(Capture& capture, CUresult why) {
  capture.invalidated = true;
  return why;
}

void join(Stream& stream, Capture& capture, std::vector<Node*> after) {
  stream.capture = &capture;
  capture.ends[&stream] = std::move(after);
}

void add_ends(std::vector<Node*>& ends, const std::vector<Node*>& more) {
  for (Node* node : more) {
    if (std::ranges::find(ends, node) == ends.end()) ends.push_back(node);
  }
}

CUresult capture_record(Stream& stream, Event& event) {
  event.capture = stream.capture;
  event.capture_nodes = stream.capture->ends[&stream];
  return CUDA_SUCCESS;
}

CUresult capture_wait(Stream& stream, const Event& event) {
  Capture& capture = *stream.capture;
  if (event.capture != &capture) return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  add_ends(capture.ends[&stream], event.capture_nodes);
  return CUDA_SUCCESS;
}

// Every end of another stream must lie before the origin's end.
bool all_joined(const Capture& capture) {
  std::set<const Node*> behind;
  std::vector<const Node*> open;
  for (const Node* node : capture.ends.at(capture.origin)) open.push_back(node);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!behind.insert(node).second) continue;
    for (const Node* before : node->after) open.push_back(before);
  }
  const auto joined = [&](const Node* node) { return behind.contains(node); };
  return std::ranges::all_of(capture.left_behind, joined) &&
         std::ranges::all_of(capture.ends, [&](const auto& entry) {
           return std::ranges::all_of(entry.second, joined);
         });
}

void forget(Capture& capture) {
  for (const auto& [stream, nodes] : capture.ends) stream->capture = nullptr;
  library().events.for_each([&](Event& event) {
    if (event.capture != &capture) return;
    event.capture = nullptr;
    event.capture_nodes.clear();
  });
  std::erase_if(captures(), [&](const auto& entry) { return entry.get() == &capture; });
}

}  // namespace

[[gnu::hot]] bool is_capturing(const Stream& stream) { return stream.capture != nullptr; }

CUresult refuse_capture(Stream& stream) {
  if (stream.capture != nullptr) {
    return invalidate(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return refuse_implicit(stream);
}

// The default stream is ordered with blocking streams: it cannot be used beside their capture.
[[gnu::hot]] CUresult refuse_implicit(const Stream& stream) {
  if (!stream.legacy_default) return CUDA_SUCCESS;
  for (const auto& capture : captures()) {
    const Stream& origin = *capture->origin;
    const bool ordered = origin.context == stream.context &&
                         (origin.flags & CU_STREAM_NON_BLOCKING) == 0 &&
                         capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    if (ordered) return invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  return CUDA_SUCCESS;
}

CUstreamCaptureMode& thread_capture_mode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult refuse_during_capture() {
  const CUstreamCaptureMode mode = thread_capture_mode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& capture : captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool global =
        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || (!own && !global)) continue;
    return invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return CUDA_SUCCESS;
}

CUresult capture_operation(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (const auto* record = std::get_if<RecordOperation>(&operation)) {
    Event* event = library().events.find(record->event);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : capture_record(stream, *event);
  }
  if (const auto* wait = std::get_if<WaitOperation>(&operation)) {
    const Event* event = library().events.find(wait->event);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : capture_wait(stream, *event);
  }
  Node* node = nullptr;
  std::vector<Node*>& ends = capture.ends[&stream];
  if (const CUresult result = add_node(*capture.graph, ends, std::move(operation), node)) {
    return result;
  }
  ends = {node};
  return CUDA_SUCCESS;
}

CUresult join_capture(Stream& stream, const Event& event) {
  if (event.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.legacy_default) {
    return invalidate(*event.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  join(stream, *event.capture, event.capture_nodes);
  return CUDA_SUCCESS;
}

CUresult capture_allocation(Stream& stream, const CUmemPoolProps& pool, std::uint64_t bytes,
                            CUdeviceptr& address) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool = pool;
  params.bytes = bytes;
  Node* node = nullptr;
  std::vector<Node*>& ends = capture.ends[&stream];
  if (const CUresult result = add_allocation(*capture.graph, ends, params, node)) return result;
  ends = {node};
  address = params.address;
  return CUDA_SUCCESS;
}

CUresult begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into,
                       std::vector<Node*> after) {
  if (stream.legacy_default) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto capture = std::make_unique<Capture>();
  capture->graph = into != nullptr ? into : &make_graph();
  capture->into_given_graph = into != nullptr;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = library().next_id();
  join(stream, *capture, std::move(after));
  captures().push_back(std::move(capture));
  return CUDA_SUCCESS;
}

CUresult end_capture(Stream& stream, Graph*& graph) {
  graph = nullptr;
  if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = *stream.capture;
  if (capture.origin != &stream) return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture.thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture.invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  if (result == CUDA_SUCCESS) {
    graph = capture.graph;
  } else if (!capture.into_given_graph) {
    destroy_graph(*capture.graph);
  }
  forget(capture);
  return result;
}

void forget_capture_of(Stream& stream) {
  if (stream.capture == nullptr) return;
  Capture& capture = *stream.capture;
  if (capture.origin != &stream) {
    // A branch may end before the capture does; what it did must still be joined.
    add_ends(capture.left_behind, capture.ends[&stream]);
    capture.ends.erase(&stream);
    stream.capture = nullptr;
    return;
  }
  Graph* graph = capture.into_given_graph ? nullptr : capture.graph;
  forget(capture);
  if (graph != nullptr) destroy_graph(*graph);
}

}  // namespace aliquot::simdriver
