// Graphs: what their allocation nodes need is charged when they are instantiated.
//
// The driver takes the memory at the first launch and keeps it beyond the graph's end until it is
// trimmed. So an instantiated graph is charged the sum of its nodes, and what the driver keeps
// beyond all of them is charged as a pool is (pools.h).
#include <sys/mman.h>

#include "interposer/contexts.h"
#include "interposer/guards.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

// Each GPU's part of an instantiated graph is an entry of its own.
std::uint64_t name_of_part(CUgraphExec graph, unsigned gpu) {
  return name_of(graph) + gpu * 0x1'0000'0000'0000ull;  // above every address of a process
}

// The nodes of a graph, in memory of their own; result() says whether these are all.
class Nodes {
 public:
  explicit Nodes(CUgraph graph) : result_(real::cuGraphGetNodes(graph, nullptr, &count_)) {
    if (result_ != CUDA_SUCCESS || count_ == 0) return;
    bytes_ = count_ * sizeof(CUgraphNode);
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      result_ = CUDA_ERROR_OUT_OF_MEMORY;
      return;
    }
    nodes_ = static_cast<CUgraphNode*>(memory);
    result_ = real::cuGraphGetNodes(graph, nodes_, &count_);
    if (result_ != CUDA_SUCCESS) count_ = 0;
  }
  ~Nodes() {
    if (nodes_ != nullptr) munmap(nodes_, bytes_);
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  CUresult result() const { return result_; }
  const CUgraphNode* begin() const { return nodes_; }
  const CUgraphNode* end() const { return nodes_ != nullptr ? nodes_ + count_ : nullptr; }

 private:
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  CUgraphNode* nodes_ = nullptr;
  CUresult result_;
};

struct Needs {
  std::uint64_t bytes[wire::kMaxGpus] = {};
};

CUresult add_needs(CUgraph graph, Needs& needs, unsigned depth);

CUresult add_needs_of_node(CUgraphNode node, Needs& needs, unsigned depth) {
  CUgraphNodeType type = 0;
  CUresult result = real::cuGraphNodeGetType(node, &type);
  if (result != CUDA_SUCCESS) return result;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    CUgraph child = nullptr;
    result = real::cuGraphChildGraphNodeGetGraph(node, &child);
    return result == CUDA_SUCCESS ? add_needs(child, needs, depth + 1) : result;
  }
  if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return CUDA_SUCCESS;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  result = real::cuGraphMemAllocNodeGetParams(node, &params);
  if (result != CUDA_SUCCESS) return result;
  const unsigned gpu = gpu_of(params.pool.location);
  if (gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  if (gpu < wire::kMaxGpus) needs.bytes[gpu] += round_up(params.bytes, kBlockGranule);
  return CUDA_SUCCESS;
}

// What cannot be looked at is not instantiated: it would be uncharged. Nobody nests deeper by hand,
// and each level costs stack of a thread that is not ours.
CUresult add_needs(CUgraph graph, Needs& needs, unsigned depth) {
  constexpr unsigned kDeepest = 16;
  if (depth > kDeepest) return CUDA_ERROR_NOT_SUPPORTED;
  const Nodes nodes(graph);
  CUresult result = nodes.result();
  for (const CUgraphNode node : nodes)
    if (result == CUDA_SUCCESS) result = add_needs_of_node(node, needs, depth);
  return result;
}

// The parts of an instantiated graph, taken out before the driver ends it.
struct Parts {
  Held part[wire::kMaxGpus];
};
Parts take_parts(CUgraphExec graph) {
  Parts parts;
  for (unsigned gpu = 0; gpu < tenant().gpu_count(); ++gpu)
    parts.part[gpu] = held_objects().take(name_of_part(graph, gpu));
  return parts;
}
// Gives them back, and looks at what the driver still keeps for graphs.
void let_go_of(const Parts& parts) {
  for (unsigned gpu = 0; gpu < tenant().gpu_count(); ++gpu) {
    const Held& part = parts.part[gpu];
    if (part.name == 0) continue;
    add_graph_bytes(gpu, -static_cast<std::int64_t>(part.bytes));
    let_go(part);
    PoolCall kept(*graph_record(gpu), 0);
    // Another thread may have taken the room for what the driver still keeps: then it must go.
    if (!kept.settle()) real::cuDeviceGraphMemTrim(device_of(gpu));
  }
}

void give_back_needs(const Needs& needs, unsigned gpus) {
  for (unsigned gpu = 0; gpu < gpus; ++gpu) give_back(gpu, Kind::kGraph, needs.bytes[gpu]);
}
bool reserve_needs(const Needs& needs) {
  for (unsigned gpu = 0; gpu < tenant().gpu_count(); ++gpu) {
    Reservation part(gpu, Kind::kGraph, needs.bytes[gpu]);
    if (!part.granted()) {
      give_back_needs(needs, gpu);
      return false;
    }
    part.commit();
  }
  return true;
}
// False: no memory to remember it; what is remembered goes with take_parts.
bool keep_needs(CUgraphExec graph, const Needs& needs) {
  for (unsigned gpu = 0; gpu < tenant().gpu_count(); ++gpu) {
    if (needs.bytes[gpu] == 0) continue;
    Held unseen;
    if (!held_objects().insert({name_of_part(graph, gpu), 0, needs.bytes[gpu],
                                static_cast<std::uint64_t>(Kind::kGraph), gpu},
                               &unseen))
      return false;
    let_go(unseen);
    add_graph_bytes(gpu, static_cast<std::int64_t>(needs.bytes[gpu]));
  }
  return true;
}

template <class Call>
CUresult instantiate(CUgraphExec* out, CUgraph graph, Call call) {
  Needs needs;
  const CUresult known = add_needs(graph, needs, 0);
  if (known != CUDA_SUCCESS) return known;
  if (!reserve_needs(needs)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUgraphExec made = nullptr;
  const CUresult result = call(out != nullptr ? &made : nullptr);
  if (result == CUDA_SUCCESS && keep_needs(made, needs)) {
    *out = made;
    return result;
  }
  if (result == CUDA_SUCCESS) {
    for (const Held& part : take_parts(made).part)
      if (part.name != 0) add_graph_bytes(part.gpu, -static_cast<std::int64_t>(part.bytes));
    real::cuGraphExecDestroy(made);
  }
  give_back_needs(needs, tenant().gpu_count());
  return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

}  // namespace

namespace guard {

CUresult cuGraphInstantiate(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                            char* log_buffer, size_t buffer_size) {
  return instantiate(graph_exec, graph, [&](CUgraphExec* at) {
    return real::cuGraphInstantiate(at, graph, error_node, log_buffer, buffer_size);
  });
}
CUresult cuGraphInstantiate_v2(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                               char* log_buffer, size_t buffer_size) {
  return instantiate(graph_exec, graph, [&](CUgraphExec* at) {
    return real::cuGraphInstantiate_v2(at, graph, error_node, log_buffer, buffer_size);
  });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* graph_exec, CUgraph graph,
                                     unsigned long long flags) {
  return instantiate(graph_exec, graph, [&](CUgraphExec* at) {
    return real::cuGraphInstantiateWithFlags(at, graph, flags);
  });
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* graph_exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate(graph_exec, graph, [&](CUgraphExec* at) {
    return real::cuGraphInstantiateWithParams(at, graph, params);
  });
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* graph_exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate(graph_exec, graph, [&](CUgraphExec* at) {
    return real::cuGraphInstantiateWithParams_ptsz(at, graph, params);
  });
}

CUresult cuGraphExecDestroy(CUgraphExec graph_exec) {
  const Parts parts = take_parts(graph_exec);
  const CUresult result = real::cuGraphExecDestroy(graph_exec);
  if (result == CUDA_SUCCESS)
    let_go_of(parts);
  else
    for (const Held& part : parts.part) put_back(held_objects(), part);
  return result;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = real::cuDeviceGraphMemTrim(device);
  const unsigned gpu = gpu_of(device);
  if (result == CUDA_SUCCESS && gpu != kForeignGpu) {
    PoolCall kept(*graph_record(gpu), 0);
    if (!kept.settle()) return result;  // less than before always fits
  }
  return result;
}

}  // namespace guard
}  // namespace aliquot::interposer
