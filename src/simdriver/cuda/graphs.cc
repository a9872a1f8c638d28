#include "simdriver/cuda/graphs.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "simdriver/cuda/allocate.h"

namespace aliquot::simdriver {
namespace {

// A graph for a child node: the registry keeps it, the last operation that names it ends it.
std::shared_ptr<Graph> own_child(Graph& graph) {
  graph.child = true;
  return {&graph, [](Graph* gone) { destroy_graph(*gone); }};
}

// A child node's graph is copied with the node.
Operation copy_operation(const Operation& operation) {
  const auto* child = std::get_if<ChildOperation>(&operation);
  if (child == nullptr) return operation;
  return child_operation(*child->graph);
}

}  // namespace

Operation child_operation(const Graph& graph) {
  return ChildOperation{own_child(clone_graph(graph))};
}

GraphObjects& graph_objects() {
  static auto* const all = new GraphObjects;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

Graph* find_graph(CUgraph handle) { return graph_objects().graphs.find(handle); }
Node* find_node(CUgraphNode handle) { return graph_objects().nodes.find(handle); }

Graph& make_graph() {
  auto graph = std::make_unique<Graph>();
  graph->id = static_cast<unsigned>(library().next_id());
  return *graph_objects().graphs.add(std::move(graph));
}

CUresult add_node(Graph& graph, const std::vector<Node*>& after, Operation operation, Node*& node) {
  for (const Node* before : after) {
    if (before == nullptr || before->graph != &graph || std::ranges::count(after, before) != 1) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  auto made = std::make_unique<Node>();
  made->graph = &graph;
  made->id = static_cast<unsigned>(graph.nodes.size());
  made->operation = std::move(operation);
  made->after = after;
  node = graph_objects().nodes.add(std::move(made));
  for (Node* before : after) before->before.push_back(node);
  graph.nodes.push_back(node);
  return CUDA_SUCCESS;
}

CUresult add_edge(Node& from, Node& to) {
  if (&from == &to || from.graph != to.graph ||
      std::ranges::find(to.after, &from) != to.after.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  to.after.push_back(&from);
  from.before.push_back(&to);
  return CUDA_SUCCESS;
}

void destroy_node(Node& node) {
  for (Node* other : node.after) std::erase(other->before, &node);
  for (Node* other : node.before) std::erase(other->after, &node);
  if (node.reserved_address != 0) {
    library().memory().promised().erase(node.reserved_address);
    library().memory().unreserve(node.reserved_address, node.reserved_bytes);
  }
  std::erase(node.graph->nodes, &node);
  graph_objects().nodes.remove(&node);
}

void destroy_graph(Graph& graph) {
  while (!graph.nodes.empty()) destroy_node(*graph.nodes.back());
  for (const auto& [object, count] : graph.objects) release_object(*object, count);
  graph_objects().graphs.remove(&graph);
}

Graph& clone_graph(const Graph& graph) {
  Graph& copy = make_graph();
  std::map<const Node*, Node*> twin;
  for (const Node* node : graph.nodes) {
    add_node(copy, {}, copy_operation(node->operation), twin[node]);
    twin[node]->cloned_from = node;
  }
  for (const Node* node : graph.nodes) {
    for (const Node* before : node->after) add_edge(*twin[before], *twin[node]);
  }
  retain_objects(graph.objects);
  copy.objects = graph.objects;
  return copy;
}

CUresult add_allocation(Graph& graph, const std::vector<Node*>& after,
                        CUDA_MEM_ALLOC_NODE_PARAMS& params, Node*& node) {
  if (params.bytes == 0 || params.pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      library().device(params.pool.location.id) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Memory& memory = library().memory();
  if (params.bytes > kArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t whole = (params.bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  const std::uint64_t address = memory.reserve(whole, kGranuleBytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  params.address = address;
  AllocOperation operation{params};
  operation.params.access = nullptr;  // the caller's array; not kept
  operation.params.num_access = 0;
  const CUresult result = add_node(graph, after, operation, node);
  if (result != CUDA_SUCCESS) {
    memory.unreserve(address, whole);
    return result;
  }
  memory.promised()[address] = params.bytes;
  node->reserved_address = address;
  node->reserved_bytes = whole;
  return CUDA_SUCCESS;
}

void retain_objects(const std::map<UserObject*, unsigned>& objects) {
  for (const auto& [object, count] : objects) object->references += count;
}

void release_object(UserObject& object, unsigned count) {
  object.references -= std::min(object.references, count);
  if (object.references != 0) return;
  // The destructor may take its time, but must not call the driver: it runs here.
  const CUhostFn destroy = object.destroy;
  void* address = object.address;
  graph_objects().user_objects.remove(&object);
  destroy(address);
}

namespace {

// Nodes of child graphs take the child's place: begin after what the child waits for.
class Flattening {
 public:
  explicit Flattening(Executable& executable) : executable_(executable) {}

  // Indexes of the last nodes of `graph`, put behind `after`. False: a circle.
  bool add(const Graph& graph, const std::vector<std::size_t>& after,
           std::vector<std::size_t>& last) {
    std::map<const Node*, std::size_t> missing;
    std::map<const Node*, std::vector<std::size_t>> ends;
    std::queue<const Node*> ready;
    for (const Node* node : graph.nodes) {
      missing[node] = node->after.size();
      if (node->after.empty()) ready.push(node);
    }
    std::size_t done = 0;
    for (; !ready.empty(); ready.pop(), ++done) {
      const Node* node = ready.front();
      std::vector<std::size_t> before = node->after.empty() ? after : std::vector<std::size_t>();
      for (const Node* other : node->after) {
        before.insert(before.end(), ends[other].begin(), ends[other].end());
      }
      if (!place(*node, before, ends[node])) return false;
      for (const Node* next : node->before) {
        if (--missing[next] == 0) ready.push(next);
      }
      if (node->before.empty()) last.insert(last.end(), ends[node].begin(), ends[node].end());
    }
    return done == graph.nodes.size();
  }

 private:
  bool place(const Node& node, const std::vector<std::size_t>& before,
             std::vector<std::size_t>& ends) {
    if (const auto* child = std::get_if<ChildOperation>(&node.operation)) {
      if (!add(*child->graph, before, ends)) return false;
      if (ends.empty()) ends = before;
      return true;
    }
    executable_.nodes.push_back({node.operation, before, &node, true});
    if (const auto* alloc = std::get_if<AllocOperation>(&node.operation)) {
      executable_.allocations.push_back(alloc->params.address);
    }
    ends = {executable_.nodes.size() - 1};
    return true;
  }

  Executable& executable_;
};

bool frees(const Executable& executable, std::uint64_t address) {
  return std::ranges::any_of(executable.nodes, [&](const ExecutableNode& node) {
    const auto* free = std::get_if<FreeOperation>(&node.operation);
    return free != nullptr && free->address == address;
  });
}

CUresult take_graph_memory(const AllocOperation& alloc, const Executable& executable,
                           Context& context) {
  Memory& memory = library().memory();
  const CUDA_MEM_ALLOC_NODE_PARAMS& params = alloc.params;
  if (Allocation* before = memory.find(params.address)) {
    // An earlier launch that frees it has not come to that yet: this one takes it over.
    if (!frees(executable, params.address)) return CUDA_ERROR_INVALID_VALUE;
    ++before->graph_launches;
    return CUDA_SUCCESS;
  }
  DeviceView* device = library().device(params.pool.location.id);
  const std::uint64_t whole = (params.bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  const CUresult result =
      library().ask(Op::kMemoryTake, MemoryRequest{device->server, MemoryKind::kGraph, whole});
  if (result != CUDA_SUCCESS) return result;
  Allocation allocation;
  allocation.base = params.address;
  allocation.bytes = params.bytes;
  allocation.charged_bytes = whole;
  allocation.kind = AllocationKind::kGraph;
  allocation.context = &context;
  allocation.device = device;
  allocation.file = memory.arena();
  allocation.file_offset = memory.arena_offset(params.address);
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
  GraphObjects& all = graph_objects();
  all.graph_bytes += whole;
  all.graph_bytes_high = std::max(all.graph_bytes_high, all.graph_bytes);
  return CUDA_SUCCESS;
}

void give_graph_memory(std::uint64_t address) {
  Allocation* allocation = library().memory().find(address);
  if (allocation != nullptr && allocation->kind == AllocationKind::kGraph) {
    end_graph_launch(*allocation);
  }
}

// All or nothing, before anything of the launch is submitted.
CUresult take_all(const Executable& executable, Context& context) {
  if ((executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
    for (const std::uint64_t address : executable.allocations) give_graph_memory(address);
  }
  std::vector<std::uint64_t> taken;
  for (const ExecutableNode& node : executable.nodes) {
    const auto* alloc = std::get_if<AllocOperation>(&node.operation);
    if (alloc == nullptr) continue;
    const CUresult result = take_graph_memory(*alloc, executable, context);
    if (result != CUDA_SUCCESS) {
      for (const std::uint64_t address : taken) give_graph_memory(address);
      return result;
    }
    taken.push_back(alloc->params.address);
  }
  return CUDA_SUCCESS;
}

// Which stream each node runs in: a chain stays in one, branches get others.
class Lanes {
 public:
  explicit Lanes(Stream& stream) : streams_{&stream}, last_(1) {}

  CUresult run(const Executable& executable) {
    std::vector<Elsewhere> places(executable.nodes.size());
    std::vector<std::size_t> lanes(executable.nodes.size());
    for (std::size_t i = 0; i < executable.nodes.size(); ++i) {
      const ExecutableNode& node = executable.nodes[i];
      std::size_t lane = 0;
      if (const CUresult result = choose(i, node, lanes, lane)) return result;
      Stream& stream = *streams_[lane];
      for (const std::size_t before : node.after) {
        if (lanes[before] != lane) submit_wait(stream, places[before]);
      }
      if (node.enabled) {
        if (const CUresult result = submit_operation(stream, node.operation)) return result;
      }
      lanes[i] = lane;
      last_[lane] = i;
      places[i] = last_of(stream);
    }
    for (std::size_t lane = 1; lane < streams_.size(); ++lane) {
      submit_wait(*streams_[0], last_of(*streams_[lane]));
    }
    return CUDA_SUCCESS;
  }

 private:
  CUresult choose(std::size_t index, const ExecutableNode& node,
                  const std::vector<std::size_t>& lanes, std::size_t& lane) {
    for (const std::size_t before : node.after) {
      if (last_[lanes[before]] == before) {
        lane = lanes[before];
        return CUDA_SUCCESS;
      }
    }
    if (index == 0) return CUDA_SUCCESS;  // in the launching stream
    // More branches than this share lanes: that changes time, never order.
    constexpr std::size_t kMostLanes = 8;
    if (streams_.size() == kMostLanes) {
      lane = 1 + index % (kMostLanes - 1);
      return CUDA_SUCCESS;
    }
    Context& context = *streams_[0]->context;
    while (context.graph_lanes.size() < streams_.size()) {
      Stream* made = nullptr;
      const CUresult result = open_stream(context, CU_STREAM_NON_BLOCKING, 0, made);
      if (result != CUDA_SUCCESS) return result;
      context.graph_lanes.push_back(made);
    }
    Stream* next = context.graph_lanes[streams_.size() - 1];
    if (next == streams_[0]) return CUDA_ERROR_INVALID_HANDLE;
    submit_wait(*next, start_);
    lane = streams_.size();
    streams_.push_back(next);
    last_.push_back(SIZE_MAX);
    return CUDA_SUCCESS;
  }

  std::vector<Stream*> streams_;
  std::vector<std::size_t> last_;  // index of the last node in each lane

 public:
  Elsewhere start_;  // nothing of the launch begins before
};

}  // namespace

CUresult instantiate(const Graph& graph, std::uint64_t flags, Executable*& made) {
  auto executable = std::make_unique<Executable>();
  executable->flags = flags;
  std::vector<std::size_t> last;
  if (!Flattening(*executable).add(graph, {}, last)) return CUDA_ERROR_INVALID_VALUE;
  retain_objects(graph.objects);
  executable->objects = graph.objects;
  made = graph_objects().executables.add(std::move(executable));
  return CUDA_SUCCESS;
}

CUresult launch_executable(Stream& stream, Executable& executable) {
  if (const CUresult result = take_all(executable, *stream.context)) return result;
  // One launch of an executable at a time.
  if (executable.last_launch.seq != 0) submit_wait(stream, executable.last_launch);
  const CUresult marked = submit(stream, CommandOp::kFill, {0});
  if (marked != CUDA_SUCCESS) return marked;
  Lanes lanes(stream);
  lanes.start_ = last_of(stream);
  const CUresult result = lanes.run(executable);
  executable.last_launch = last_of(stream);
  executable.last_launch.stream = nullptr;  // it may be gone by then; its effects are ordered
  return result;
}

void destroy_executable(Executable& executable) {
  for (const auto& [object, count] : executable.objects) release_object(*object, count);
  graph_objects().executables.remove(&executable);
}

}  // namespace aliquot::simdriver
