// Graphs: operations with an order between them, made by hand or by capturing streams, and run as
// a whole. Under the library's lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "simdriver/cuda/operations.h"

namespace aliquot::simdriver {

struct UserObject {
  CUhostFn destroy = nullptr;
  void* address = nullptr;
  unsigned references = 0;
};

// What a CUgraphNode points to.
struct Node {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<Node*> after;   // it waits for these
  std::vector<Node*> before;  // these wait for it
  const Node* cloned_from = nullptr;
  std::uint64_t reserved_address = 0;  // allocation nodes: theirs
  std::uint64_t reserved_bytes = 0;
  unsigned id = 0;
};

// What a CUgraph points to. A child graph is owned by its node.
struct Graph {
  std::vector<Node*> nodes;  // in the order of making
  std::map<UserObject*, unsigned> objects;
  unsigned id = 0;
  bool child = false;
};

// A node of an executable graph: a copy of its operation, and the nodes before it by index.
struct ExecutableNode {
  Operation operation;
  std::vector<std::size_t> after;
  const Node* source = nullptr;
  bool enabled = true;
};

// What a CUgraphExec points to.
struct Executable {
  std::vector<ExecutableNode> nodes;  // each after those that it waits for
  std::map<UserObject*, unsigned> objects;
  std::uint64_t flags = 0;
  Elsewhere last_launch;
  std::vector<std::uint64_t> allocations;  // addresses that its allocation nodes give
};

struct GraphObjects {
  Registry<Graph> graphs;
  Registry<Node> nodes;
  Registry<Executable> executables;
  Registry<UserObject> user_objects;
  std::uint64_t graph_bytes = 0;  // of allocation nodes, now and at most
  std::uint64_t graph_bytes_high = 0;
};
GraphObjects& graph_objects();

Graph* find_graph(CUgraph handle);
Node* find_node(CUgraphNode handle);

Graph& make_graph();
// `node` gets the new node. Dependencies must be nodes of the graph, each once.
CUresult add_node(Graph& graph, const std::vector<Node*>& after, Operation operation, Node*& node);
CUresult add_edge(Node& from, Node& to);
void destroy_node(Node& node);
void destroy_graph(Graph& graph);
// A copy; nodes know whom they were cloned from.
Graph& clone_graph(const Graph& graph);
// An operation that stands for a copy of the graph.
Operation child_operation(const Graph& graph);

// An allocation node: addresses now, memory at each launch.
CUresult add_allocation(Graph& graph, const std::vector<Node*>& after,
                        CUDA_MEM_ALLOC_NODE_PARAMS& params, Node*& node);

CUresult instantiate(const Graph& graph, std::uint64_t flags, Executable*& made);
CUresult launch_executable(Stream& stream, Executable& executable);
void destroy_executable(Executable& executable);

void retain_objects(const std::map<UserObject*, unsigned>& objects);
// Their destructors run when nobody refers to them any more.
void release_object(UserObject& object, unsigned count);

// A capture in progress.
struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = 0;
  std::thread::id thread;
  std::uint64_t id = 0;
  bool invalidated = false;
  bool into_given_graph = false;
  std::map<Stream*, std::vector<Node*>> ends;  // what the next operation of a stream comes after
  std::vector<Node*> left_behind;              // by streams that were destroyed meanwhile
};

CUresult begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into,
                       std::vector<Node*> after);
CUresult end_capture(Stream& stream, Graph*& graph);
// For calls that a capture of this thread, or a global one of any, forbids.
CUresult refuse_during_capture();
CUstreamCaptureMode& thread_capture_mode();

}  // namespace aliquot::simdriver
