#include "simdriver/cuda/operations.h"

#include <atomic>
#include <utility>

#include "simdriver/cuda/event_cells.h"
#include "simdriver/cuda/graphs.h"

namespace aliquot::simdriver {
namespace {

Elsewhere place_of(const Event& event) {
  return {event.context_key, event.slot, event.seq, event.stream};
}

struct Submit {
  Stream& stream;

  CUresult operator()(const EmptyOperation&) const { return CUDA_SUCCESS; }
  CUresult operator()(const LaunchOperation& operation) const {
    return submit_launch(stream, operation);
  }
  CUresult operator()(const CopyOperation& operation) const {
    return submit_copy(stream, operation.box);
  }
  CUresult operator()(const FillOperation& operation) const {
    return submit_fill(stream, operation.fill);
  }
  CUresult operator()(const HostOperation& operation) const {
    submit_hold(stream, Effect::Kind::kHost, [operation] {
      operation.function(operation.user_data);
      return true;
    });
    return CUDA_SUCCESS;
  }
  CUresult operator()(const RecordOperation& operation) const {
    Event* event = library().events.find(operation.event);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : record_event(stream, *event);
  }
  CUresult operator()(const WaitOperation& operation) const {
    Event* event = library().events.find(operation.event);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : wait_event(stream, *event);
  }
  CUresult operator()(const ValueOperation& operation) const {
    return submit_values(stream, operation);
  }
  CUresult operator()(const AllocOperation&) const { return CUDA_SUCCESS; }
  CUresult operator()(const FreeOperation& operation) const {
    submit_free(stream, operation.address);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const ChildOperation&) const { return CUDA_ERROR_NOT_SUPPORTED; }
};

bool holds(std::uint64_t now, const CUstreamBatchMemOpParams& wait) {
  const bool wide = wait.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  const std::uint64_t mask = wide ? ~0ull : 0xffffffffull;
  const std::uint64_t want = wait.value.value & mask;
  now &= mask;
  switch (wait.value.flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:  // cyclic
      return wide ? static_cast<std::int64_t>(now - want) >= 0
                  : static_cast<std::int32_t>(now - want) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == want;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & want) != 0;
    default:
      return (~(now | want) & mask) != 0;
  }
}

std::uint64_t value_bytes(const CUstreamBatchMemOpParams& operation) {
  return operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                 operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64
             ? 8
             : 4;
}

bool read_value(const CUstreamBatchMemOpParams& operation, std::uint64_t& value) {
  value = 0;
  const std::uint64_t address = operation.value.address;
  const std::uint64_t bytes = value_bytes(operation);
  if (library().memory().is_device_address(address)) {
    return library().memory().load(&value, address, bytes) == CUDA_SUCCESS;
  }
  // The program's threads write it meanwhile.
  value = bytes == 8 ? std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address)).load()
                     : std::atomic_ref(*reinterpret_cast<std::uint32_t*>(address)).load();
  return true;
}

bool write_value(const CUstreamBatchMemOpParams& operation) {
  const std::uint64_t address = operation.value.address;
  const std::uint64_t bytes = value_bytes(operation);
  if (library().memory().is_device_address(address)) {
    return library().memory().store(address, &operation.value.value, bytes) == CUDA_SUCCESS;
  }
  if (bytes == 8)
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address)).store(operation.value.value);
  else
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(address))
        .store(static_cast<std::uint32_t>(operation.value.value));
  return true;
}

}  // namespace

CUresult submit_operation(Stream& stream, const Operation& operation) {
  return std::visit(Submit{stream}, operation);
}

CUresult enqueue(Stream& stream, Operation operation) {
  if (!is_capturing(stream)) {
    // Waiting for an event of a capture makes the stream part of it.
    const auto* wait = std::get_if<WaitOperation>(&operation);
    const Event* event = wait == nullptr ? nullptr : library().events.find(wait->event);
    if (event != nullptr && event->capture != nullptr) return join_capture(stream, *event);
  }
  if (is_capturing(stream)) return capture_operation(stream, std::move(operation));
  if (const CUresult result = refuse_implicit(stream)) return result;
  return submit_operation(stream, operation);
}

CUresult record_event(Stream& stream, Event& event) {
  if (event.context != stream.context) return CUDA_ERROR_INVALID_HANDLE;
  event.capture = nullptr;
  event.capture_nodes.clear();
  const CUresult result = submit(stream, CommandOp::kMark, {event.number});
  event.recorded_in = stream.context->pages;
  event.context_key = stream.context->key;
  event.slot = stream.slot;
  event.seq = stream.submitted;
  event.stream = &stream;
  if (event.cell != nullptr) {
    write_place(*event.cell, place_of(event));
    event.followed_key = event.context_key;
    event.followed_slot = event.slot;
    event.followed_seq = event.seq;
  }
  return result;
}

CUresult wait_event(Stream& stream, Event& event) {
  if (const CUresult result = follow_cell(event)) return result;
  // An event that was never recorded holds nobody up.
  if (event.recorded_in != nullptr) submit_wait(stream, place_of(event));
  return CUDA_SUCCESS;
}

CUresult check_values(const ValueOperation& operation) {
  for (const CUstreamBatchMemOpParams& one : operation.operations) {
    if (one.operation == CU_STREAM_MEM_OP_BARRIER ||
        one.operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
      continue;
    }
    const bool known = one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                       one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                       one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
                       one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const std::uint64_t bytes = value_bytes(one);
    if (!known || one.value.address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    Memory& memory = library().memory();
    const bool there =
        memory.is_device_address(one.value.address)
            ? memory.covers(one.value.address, bytes)
            : memory.find_host(reinterpret_cast<void*>(one.value.address)) != nullptr;
    if (!there) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult submit_values(Stream& stream, const ValueOperation& operation) {
  for (const CUstreamBatchMemOpParams& one : operation.operations) {
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        submit_hold(stream, Effect::Kind::kPoll, [one] {
          std::uint64_t now = 0;
          return read_value(one, now) && holds(now, one);
        });
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
        const CUresult result = submit(stream, CommandOp::kFill, {value_bytes(one)},
                                       [one] { return write_value(one); });
        if (result != CUDA_SUCCESS) return result;
        break;
      }
      default:
        break;  // orders what is in order already
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace aliquot::simdriver
