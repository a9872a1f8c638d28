// Graphs: what their allocation nodes need is charged when they are instantiated, and how long
// their kernels will take is noted for the gate.
//
// The driver takes the memory at the first launch and keeps it beyond the graph's end until it is
// trimmed. So an instantiated graph is charged the sum of its nodes, and what the driver keeps
// beyond all of them is charged as a pool is (pools.h).
#include <sys/mman.h>

#include "interposer/contexts.h"
#include "interposer/gate_state.h"
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
    if (nodes_ != nullptr) munmap(static_cast<void*>(nodes_), bytes_);
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
  Nanoseconds known_ns = 0;  // of kernels that were measured, in real time
  std::uint64_t unknown_kernels = 0;
};

// A kernel is known by the same key as if it were launched by itself.
void add_kernel(CUgraphNode node, Needs& needs) {
  CUDA_KERNEL_NODE_PARAMS params{};
  CUDA_KERNEL_NODE_PARAMS_v1 before_12{};
  Work work;
  const auto known_as = [](const auto& kernel) {
    return kernel_work(kernel.function, {kernel.grid_x, kernel.grid_y, kernel.grid_z},
                       {kernel.block_x, kernel.block_y, kernel.block_z}, nullptr);
  };
  if (has(driver_abi::Cuda::cuGraphKernelNodeGetParams_v2)) {
    if (real::cuGraphKernelNodeGetParams_v2(node, &params) == CUDA_SUCCESS) work = known_as(params);
  } else if (real::cuGraphKernelNodeGetParams(node, &before_12) == CUDA_SUCCESS) {
    work = known_as(before_12);
  }
  const unsigned gpu = gpu_of_thread();
  const QuickGate* gate =
      gpu < wire::kMaxGpus ? quick_gates[gpu].load(std::memory_order_acquire) : nullptr;
  if (gate != nullptr && work.key != 0 && gate->tenant.knows(work.key))
    needs.known_ns += gate->tenant.estimate(work.key);
  else
    ++needs.unknown_kernels;
}

// In the machine's time, as Work has it.
Nanoseconds assumed_for(const Needs& needs) {
  const unsigned gpu = gpu_of_thread();
  const auto* state =
      gpu < wire::kMaxGpus
          ? static_cast<const GateState*>(quick_gates[gpu].load(std::memory_order_acquire))
          : nullptr;
  const double slowness = state != nullptr ? state->slowness : 1.0;
  return gate::graph_estimate(
      static_cast<Nanoseconds>(static_cast<double>(needs.known_ns) / slowness),
      needs.unknown_kernels, gate::TenantOptions{}.unknown_kernel);
}

// An instantiated graph's number (its handle may be another's later) and what it is taken to last.
constinit std::atomic<std::uint64_t> last_graph{0};  // NOLINT: the process's

void note_graph(CUgraphExec graph, const Needs& needs) {
  Held unused;
  // Without memory for it the graph counts as one unknown kernel.
  (void)held_graphs().insert({.name = name_of(graph),
                              .owner = last_graph.fetch_add(1, std::memory_order_relaxed) + 1,
                              .bytes = static_cast<std::uint64_t>(assumed_for(needs))},
                             &unused);
}

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
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) add_kernel(node, needs);
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
  if (result == CUDA_SUCCESS && out != nullptr && keep_needs(made, needs)) {
    note_graph(made, needs);
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

Work work_of(driver_abi::Cuda row, CUgraphExec graph, CUstream stream) {
  const Held noted = held_graphs().find(name_of(graph));
  // To upload a graph takes nothing like running it.
  const bool upload =
      row == driver_abi::Cuda::cuGraphUpload || row == driver_abi::Cuda::cuGraphUpload_ptsz;
  const std::uint64_t number = noted.name != 0 ? noted.owner : number_of(graph);
  return {.key = gate::kernel_key(
              {.function = number, .grid = {upload ? 2u : 1u, 0, 0}, .block = {0, 0, 0}}),
          .assumed_ns = upload ? 0 : static_cast<Nanoseconds>(noted.bytes),
          .stream = stream};
}

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
  const Held noted = held_graphs().take(name_of(graph_exec));
  const CUresult result = real::cuGraphExecDestroy(graph_exec);
  if (result == CUDA_SUCCESS) {
    let_go_of(parts);
    return result;
  }
  for (const Held& part : parts.part) put_back(held_objects(), part);
  Held unused;
  if (noted.name != 0) (void)held_graphs().insert(noted, &unused);
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
