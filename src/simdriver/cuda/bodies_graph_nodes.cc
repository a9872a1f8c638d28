// Graph nodes: added with their parameters, read back, changed.
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/copies.h"
#include "simdriver/cuda/graphs.h"
#include "simdriver/cuda/launch.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

// Where a node goes: the arguments that all the functions below begin with.
struct Where {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  size_t count;
};

CUresult resolve(const Where& where, Graph*& graph, std::vector<Node*>& after) {
  graph = find_graph(where.graph);
  if (graph == nullptr || where.out == nullptr ||
      (where.count != 0 && where.dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < where.count; ++i) after.push_back(find_node(where.dependencies[i]));
  return CUDA_SUCCESS;
}

CUresult add(const Where& where, Operation operation) {
  Graph* graph = nullptr;
  std::vector<Node*> after;
  if (const CUresult result = resolve(where, graph, after)) return result;
  Node* node = nullptr;
  const CUresult result = add_node(*graph, after, std::move(operation), node);
  if (result == CUDA_SUCCESS) *where.out = reinterpret_cast<CUgraphNode>(node);
  return result;
}

CUresult launch_of(const CUDA_KERNEL_NODE_PARAMS& params, LaunchOperation& operation) {
  operation.function =
      params.function != nullptr ? params.function : reinterpret_cast<CUfunction>(params.kernel);
  operation.grid = {params.grid_x, params.grid_y, params.grid_z};
  operation.block = {params.block_x, params.block_y, params.block_z};
  operation.shared_bytes = params.shared_bytes;
  const KernelImage* image = image_of(operation.function);
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return pack_arguments(*image, params.kernel_params, params.extra, operation.arguments);
}

CUDA_KERNEL_NODE_PARAMS widened(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS wide{};
  std::memcpy(&wide, &params, sizeof(params));
  return wide;
}

CUresult copy_of(const CUDA_MEMCPY3D& params, CopyOperation& operation) {
  operation.as_given = params;
  return box_of(params, operation.box);
}

CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS& params, FillOperation& operation) {
  const unsigned width = params.element_bytes;
  if (width != 1 && width != 2 && width != 4) return CUDA_ERROR_INVALID_VALUE;
  operation.as_given = params;
  operation.fill = {params.to, params.pitch, {params.value, width}, params.width, params.height};
  return check_fill(operation.fill);
}

CUresult values_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, ValueOperation& operation) {
  if (params.count == 0 || params.count > 256 || params.operations == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  operation.operations.assign(params.operations, params.operations + params.count);
  return check_values(operation);
}

// The parameters of every kind of node as an operation.
CUresult operation_of(const CUgraphNodeParams& params, Operation& operation) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return launch_of(params.kernel, operation.emplace<LaunchOperation>());
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_of(params.memcpy.copy, operation.emplace<CopyOperation>());
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill_of(params.memset.set, operation.emplace<FillOperation>());
    case CU_GRAPH_NODE_TYPE_HOST:
      operation = HostOperation{params.host.function, params.host.user_data};
      return params.host.function == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY:
      operation = EmptyOperation{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      operation = RecordOperation{params.event};
      return library().events.find(params.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      operation = WaitOperation{params.event};
      return library().events.find(params.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      operation = FreeOperation{params.free_address};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return values_of(params.operations, operation.emplace<ValueOperation>());
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const Graph* child = find_graph(params.child.graph);
      if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
      operation = child_operation(*child);
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult add_by_params(const Where& where, const CUgraphNodeParams& params) {
  const Lock lock = hold();
  Operation operation;
  if (const CUresult result = operation_of(params, operation)) return result;
  return add(where, std::move(operation));
}

CUresult add_alloc(const Where& where, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const Lock lock = hold();
  Graph* graph = nullptr;
  std::vector<Node*> after;
  if (const CUresult result = resolve(where, graph, after)) return result;
  Node* node = nullptr;
  const CUresult result = add_allocation(*graph, after, params, node);
  if (result == CUDA_SUCCESS) *where.out = reinterpret_cast<CUgraphNode>(node);
  return result;
}

CUresult add_any(const Where& where, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) return add_alloc(where, params->alloc);
  return add_by_params(where, *params);
}

CUgraphNodeType type_of(const Operation& operation) {
  // In the order of Operation's alternatives.
  constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
      CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
      CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
      CU_GRAPH_NODE_TYPE_MEM_ALLOC,  CU_GRAPH_NODE_TYPE_MEM_FREE,
      CU_GRAPH_NODE_TYPE_GRAPH};
  static_assert(std::size(kTypes) == std::variant_size_v<Operation>);
  return kTypes[operation.index()];
}

// Runs `read` on the node's operation of the expected kind.
template <typename Kind, typename Read>
CUresult with_node(CUgraphNode handle, const void* out, Read read) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Node* node = find_node(handle);
  auto* operation = node == nullptr ? nullptr : std::get_if<Kind>(&node->operation);
  return operation == nullptr ? CUDA_ERROR_INVALID_VALUE : read(*operation);
}

// New parameters of the kind that the node has, for the graph or an executable made from it.
CUresult replace(CUgraphNode handle, CUgraphExec executable_handle,
                 const CUgraphNodeParams& params) {
  const Lock lock = hold();
  Node* node = find_node(handle);
  Operation operation;
  if (node == nullptr || type_of(node->operation) != params.type) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = operation_of(params, operation)) return result;
  if (executable_handle == nullptr) {
    node->operation = std::move(operation);
    return CUDA_SUCCESS;
  }
  Executable* executable = graph_objects().executables.find(executable_handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (ExecutableNode& candidate : executable->nodes) {
    if (candidate.source != node) continue;
    candidate.operation = std::move(operation);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <typename Fill>
CUgraphNodeParams params_of(CUgraphNodeType type, Fill fill) {
  CUgraphNodeParams params{};
  params.type = type;
  fill(params);
  return params;
}

CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return params_of(CU_GRAPH_NODE_TYPE_KERNEL, [&](auto& params) { params.kernel = kernel; });
}
CUgraphNodeParams copy_params(const CUDA_MEMCPY3D& copy) {
  return params_of(CU_GRAPH_NODE_TYPE_MEMCPY, [&](auto& params) { params.memcpy.copy = copy; });
}
CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS& set) {
  return params_of(CU_GRAPH_NODE_TYPE_MEMSET, [&](auto& params) { params.memset.set = set; });
}
CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS& host) {
  return params_of(CU_GRAPH_NODE_TYPE_HOST, [&](auto& params) { params.host = host; });
}
CUgraphNodeParams event_params(CUgraphNodeType type, CUevent event) {
  return params_of(type, [&](auto& params) { params.event = event; });
}

void read_launch(const LaunchOperation& operation, CUDA_KERNEL_NODE_PARAMS& out) {
  out = {};
  const bool is_function = loaded_code().functions.find(operation.function) != nullptr;
  if (is_function) {
    out.function = operation.function;
  } else {
    out.kernel = reinterpret_cast<CUkernel>(operation.function);
  }
  out.grid_x = operation.grid[0];
  out.grid_y = operation.grid[1];
  out.grid_z = operation.grid[2];
  out.block_x = operation.block[0];
  out.block_y = operation.block[1];
  out.block_z = operation.block[2];
  out.shared_bytes = operation.shared_bytes;
}

CUresult set_enabled(CUgraphExec handle, CUgraphNode node_handle, unsigned* read,
                     const unsigned* write) {
  const Lock lock = hold();
  Executable* executable = graph_objects().executables.find(handle);
  const Node* node = find_node(node_handle);
  if (executable == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (ExecutableNode& candidate : executable->nodes) {
    if (candidate.source != node) continue;
    if (write != nullptr) candidate.enabled = *write != 0;
    if (read != nullptr) *read = candidate.enabled ? 1 : 0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult sim_cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                            CUgraphNodeParams* params) {
  return add_any({out, graph, after, count}, params);
}
CUresult sim_cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                               const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return add_any({out, graph, after, count}, params);
}
CUresult sim_cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                 size_t count) {
  return add_by_params({out, graph, after, count},
                       params_of(CU_GRAPH_NODE_TYPE_EMPTY, [](auto&) {}));
}
CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params({out, graph, after, count}, kernel_params(*params));
}
CUresult sim_cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params({out, graph, after, count}, kernel_params(widened(*params)));
}
CUresult sim_cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params({out, graph, after, count}, copy_params(*params));
}
CUresult sim_cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params({out, graph, after, count}, fill_params(*params));
}
CUresult sim_cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params({out, graph, after, count}, host_params(*params));
}
CUresult sim_cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                      size_t count, CUgraph child) {
  return add_by_params(
      {out, graph, after, count},
      params_of(CU_GRAPH_NODE_TYPE_GRAPH, [&](auto& params) { params.child.graph = child; }));
}
CUresult sim_cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                       size_t count, CUevent event) {
  return add_by_params({out, graph, after, count},
                       event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}
CUresult sim_cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     size_t count, CUevent event) {
  return add_by_params({out, graph, after, count},
                       event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}
CUresult sim_cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                    size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_alloc({out, graph, after, count}, *params);
}
CUresult sim_cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                   size_t count, CUdeviceptr address) {
  return add_by_params(
      {out, graph, after, count},
      params_of(CU_GRAPH_NODE_TYPE_MEM_FREE, [&](auto& params) { params.free_address = address; }));
}
CUresult sim_cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                      size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_by_params(
      {out, graph, after, count},
      params_of(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](auto& made) { made.operations = *params; }));
}

CUresult sim_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Node* node = find_node(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = type_of(node->operation);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return with_node<LaunchOperation>(node, out, [&](const LaunchOperation& operation) {
    read_launch(operation, *out);
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide{};
  const CUresult result = sim_cuGraphKernelNodeGetParams_v2(node, &wide);
  if (result == CUDA_SUCCESS) std::memcpy(out, &wide, sizeof(*out));
  return result;
}
CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return with_node<CopyOperation>(node, out, [&](const CopyOperation& operation) {
    *out = operation.as_given;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  return with_node<FillOperation>(node, out, [&](const FillOperation& operation) {
    *out = operation.as_given;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  return with_node<HostOperation>(node, out, [&](const HostOperation& operation) {
    *out = {operation.function, operation.user_data};
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return with_node<AllocOperation>(node, out, [&](const AllocOperation& operation) {
    *out = operation.params;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return with_node<FreeOperation>(node, out, [&](const FreeOperation& operation) {
    *out = operation.address;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return with_node<RecordOperation>(node, out, [&](const RecordOperation& operation) {
    *out = operation.event;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return with_node<WaitOperation>(node, out, [&](const WaitOperation& operation) {
    *out = operation.event;
    return CUDA_SUCCESS;
  });
}
CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  return with_node<ChildOperation>(node, out, [&](const ChildOperation& operation) {
    *out = reinterpret_cast<CUgraph>(operation.graph.get());
    return CUDA_SUCCESS;
  });
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : replace(node, nullptr, *params);
}
CUresult sim_cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      CUgraphNodeParams* params) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, *params);
}
CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : replace(node, nullptr, kernel_params(*params));
}
CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : replace(node, nullptr, kernel_params(widened(*params)));
}
CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, kernel_params(*params));
}
CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, kernel_params(widened(*params)));
}
CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : replace(node, nullptr, copy_params(*params));
}
CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_MEMCPY3D* params, CUcontext) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, copy_params(*params));
}
CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : replace(node, nullptr, fill_params(*params));
}
CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, fill_params(*params));
}
CUresult sim_cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : replace(node, nullptr, host_params(*params));
}
CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace(node, executable, host_params(*params));
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned int* out) {
  return out == nullptr ? CUDA_ERROR_INVALID_VALUE : set_enabled(executable, node, out, nullptr);
}
CUresult sim_cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned int on) {
  return set_enabled(executable, node, nullptr, &on);
}

}  // extern "C"
