// Graphs: made, looked at, instantiated, launched. Their nodes: bodies_graph_nodes.cc.
#include <algorithm>
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/call_cost.h"
#include "simdriver/cuda/graphs.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUgraph handle_of(Graph& graph) { return reinterpret_cast<CUgraph>(&graph); }
CUgraphNode handle_of(Node* node) { return reinterpret_cast<CUgraphNode>(node); }

CUresult instantiate_as(CUgraphExec* out, CUgraph handle, std::uint64_t flags) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Executable* made = nullptr;
  if (const CUresult result = instantiate(*graph, flags, made)) return result;
  *out = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

// The usual way to give a list: how many there are, or as many as there is room for.
CUresult give_nodes(const std::vector<Node*>& all, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = all.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? handle_of(all[i]) : nullptr;
  *count = std::min(*count, all.size());
  return CUDA_SUCCESS;
}

CUresult edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               size_t* count) {
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t at = 0;
  for (Node* node : graph->nodes) {
    for (Node* before : node->after) {
      if (from != nullptr && at < *count) {
        from[at] = handle_of(before);
        to[at] = handle_of(node);
        if (data != nullptr) data[at] = {};
      }
      ++at;
    }
  }
  *count = from == nullptr ? at : std::min(at, *count);
  return CUDA_SUCCESS;
}

CUresult neighbours(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, size_t* count,
                    std::vector<Node*> Node::* side) {
  const Lock lock = hold();
  const Node* node = find_node(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = give_nodes(node->*side, out, count);
  if (result == CUDA_SUCCESS && data != nullptr && out != nullptr) {
    std::fill(data, data + *count, CUgraphEdgeData{});
  }
  return result;
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      bool add) {
  if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Node* first = find_node(from[i]);
    Node* second = find_node(to[i]);
    if (first == nullptr || second == nullptr || first->graph != graph) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (add) {
      if (const CUresult result = add_edge(*first, *second)) return result;
    } else if (std::erase(second->after, first) == 0 || std::erase(first->before, second) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

bool same_shape(const Executable& executable, const Executable& fresh) {
  return std::ranges::equal(
      executable.nodes, fresh.nodes, [](const ExecutableNode& a, const ExecutableNode& b) {
        return a.operation.index() == b.operation.index() && a.after == b.after;
      });
}

}  // namespace

extern "C" {

CUresult sim_cuGraphCreate(CUgraph* graph, unsigned int flags) {
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  *graph = handle_of(make_graph());
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph handle) {
  const Lock lock = hold();
  Graph* graph = find_graph(handle);
  if (graph == nullptr || graph->child) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(*graph);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph* out, CUgraph handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(clone_graph(*graph));
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(clone);
  const Node* node = find_node(original);
  if (graph == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (Node* candidate : graph->nodes) {
    if (candidate->cloned_from != node) continue;
    *out = handle_of(candidate);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : give_nodes(graph->nodes, nodes, count);
}

CUresult sim_cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> roots;
  std::ranges::copy_if(graph->nodes, std::back_inserter(roots),
                       [](const Node* node) { return node->after.empty(); });
  return give_nodes(roots, nodes, count);
}

CUresult sim_cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return edges(graph, from, to, nullptr, count);
}
CUresult sim_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                CUgraphEdgeData* data, size_t* count) {
  return edges(graph, from, to, data, count);
}
CUresult sim_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return neighbours(node, out, nullptr, count, &Node::after);
}
CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out,
                                           CUgraphEdgeData* data, size_t* count) {
  return neighbours(node, out, data, count, &Node::after);
}
CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return neighbours(node, out, nullptr, count, &Node::before);
}
CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out,
                                             CUgraphEdgeData* data, size_t* count) {
  return neighbours(node, out, data, count, &Node::before);
}

CUresult sim_cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                    size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult sim_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                       const CUgraphNode* to, const CUgraphEdgeData*,
                                       size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult sim_cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                       const CUgraphNode* to, size_t count) {
  return change_edges(graph, from, to, count, false);
}
CUresult sim_cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                          const CUgraphNode* to, const CUgraphEdgeData*,
                                          size_t count) {
  return change_edges(graph, from, to, count, false);
}

CUresult sim_cuGraphDestroyNode(CUgraphNode handle) {
  const Lock lock = hold();
  Node* node = find_node(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  destroy_node(*node);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph,
                                         unsigned long long flags) {
  return instantiate_as(out, graph, flags);
}
CUresult sim_cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node,
                                   char* log, size_t size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && size != 0) *log = 0;
  return instantiate_as(out, graph, 0);
}
CUresult sim_cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                                size_t size) {
  return sim_cuGraphInstantiate_v2(out, graph, error_node, log, size);
}
CUresult sim_cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate_as(out, graph, params->flags);
  params->error_node = nullptr;
  params->result =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec handle) {
  const Lock lock = hold();
  Executable* executable = graph_objects().executables.find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  destroy_executable(*executable);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec handle, uint64_t* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Executable* executable = graph_objects().executables.find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, stream_handle, stream)) return result;
  return graph_objects().executables.find(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE
                                                             : CUDA_SUCCESS;
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, stream_handle, stream)) return result;
  Executable* executable = graph_objects().executables.find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = refuse_capture(*stream)) return result;
  const DeviceInfo& info = stream->context->device->info;
  owe(info.graph_launch_ns + executable->nodes.size() * info.graph_node_ns);
  return launch_executable(*stream, *executable);
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                                  CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Executable* executable = graph_objects().executables.find(handle);
  const Graph* graph = find_graph(graph_handle);
  if (executable == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Executable* fresh = nullptr;
  if (const CUresult result = instantiate(*graph, executable->flags, fresh)) return result;
  *info = {};
  const bool same = same_shape(*executable, *fresh);
  if (same) {
    executable->nodes = fresh->nodes;
  } else {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  destroy_executable(*fresh);
  return same ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                               CUgraphExecUpdateResult* result_out) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = sim_cuGraphExecUpdate_v2(executable, graph, &info);
  if (error_node != nullptr) *error_node = info.error_node;
  if (result_out != nullptr) *result_out = info.result;
  return result;
}

CUresult sim_cuGraphGetId(CUgraph handle, unsigned int* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = graph->id;
  return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectCreate(CUuserObject* out, void* address, CUhostFn destroy,
                                unsigned int count, unsigned int flags) {
  if (out == nullptr || destroy == nullptr || count == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  auto object = std::make_unique<UserObject>(UserObject{destroy, address, count});
  *out = reinterpret_cast<CUuserObject>(graph_objects().user_objects.add(std::move(object)));
  return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  const Lock lock = hold();
  UserObject* object = graph_objects().user_objects.find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  const Lock lock = hold();
  UserObject* object = graph_objects().user_objects.find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  release_object(*object, count);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count,
                                     unsigned int flags) {
  const Lock lock = hold();
  Graph* graph = find_graph(handle);
  UserObject* object = graph_objects().user_objects.find(object_handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  graph->objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle,
                                      unsigned int count) {
  const Lock lock = hold();
  Graph* graph = find_graph(handle);
  UserObject* object = graph_objects().user_objects.find(object_handle);
  if (graph == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto held = graph->objects.find(object);
  if (held == graph->objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->objects.erase(held);
  release_object(*object, count);
  return CUDA_SUCCESS;
}

}  // extern "C"
