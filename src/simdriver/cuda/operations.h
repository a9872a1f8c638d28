// What a stream can be asked to do, as a value: it is submitted at once, or captured into a graph
// and submitted at each launch of it. Under the library's lock.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "simdriver/cuda/copies.h"
#include "simdriver/cuda/work.h"

namespace aliquot::simdriver {

struct Function;
struct Graph;

struct LaunchOperation {
  CUfunction function = nullptr;  // as the program gave it: a function or a kernel
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> arguments;  // laid out as the kernel's parameters
  std::vector<CUlaunchAttribute> attributes;
};
struct CopyOperation {
  CUDA_MEMCPY3D as_given{};
  Box box;
};
struct FillOperation {
  CUDA_MEMSET_NODE_PARAMS as_given{};
  Fill fill;
};
struct HostOperation {
  CUhostFn function = nullptr;
  void* user_data = nullptr;
};
struct RecordOperation {
  CUevent event = nullptr;
};
struct WaitOperation {
  CUevent event = nullptr;
};
// A word of memory is written, or waited for.
struct ValueOperation {
  std::vector<CUstreamBatchMemOpParams> operations;
};
struct AllocOperation {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
};
struct FreeOperation {
  CUdeviceptr address = 0;
};
struct ChildOperation {
  std::shared_ptr<Graph> graph;
};
struct EmptyOperation {};

using Operation = std::variant<EmptyOperation, LaunchOperation, CopyOperation, FillOperation,
                               HostOperation, RecordOperation, WaitOperation, ValueOperation,
                               AllocOperation, FreeOperation, ChildOperation>;

// Into the stream's capture if it is in one, else submitted.
CUresult enqueue(Stream& stream, Operation operation);
CUresult submit_operation(Stream& stream, const Operation& operation);

// A stream that is being captured cannot be waited for or asked.
CUresult refuse_capture(Stream& stream);

CUresult record_event(Stream& stream, Event& event);
CUresult wait_event(Stream& stream, Event& event);
CUresult submit_values(Stream& stream, const ValueOperation& operation);
CUresult check_values(const ValueOperation& operation);
CUresult submit_launch(Stream& stream, const LaunchOperation& operation);
void submit_free(Stream& stream, CUdeviceptr address);
// An allocation while capturing: a node of the graph, whose address is known at once.
CUresult capture_allocation(Stream& stream, const CUmemPoolProps& pool, std::uint64_t bytes,
                            CUdeviceptr& address);
bool is_capturing(const Stream& stream);
CUresult capture_operation(Stream& stream, Operation operation);
// The stream takes part in the capture in which the event was recorded.
CUresult join_capture(Stream& stream, const Event& event);
// The default stream beside a capture that it would have to be ordered with.
CUresult refuse_implicit(const Stream& stream);
// The stream goes; its capture with it.
void forget_capture_of(Stream& stream);

}  // namespace aliquot::simdriver
