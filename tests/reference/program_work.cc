// Steps that do work: fills, copies, kernels, streams, events, and streams that are held up.
#include <algorithm>
#include <array>
#include <cstring>

#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

// What copies from the host copy: never changed, so that it does not matter when they read it.
const std::array<std::uint8_t, kSeen>& host_bytes() {
  static const std::array<std::uint8_t, kSeen> bytes = [] {
    std::array<std::uint8_t, kSeen> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::uint8_t>(i * 7 + 3);
    return made;
  }();
  return bytes;
}

void now(const std::function<void()>& effect) { effect(); }

}  // namespace

Id Program::some_memory() {
  std::vector<Id> all = mine({Kind::kLinear, Kind::kManaged, Kind::kPool});
  for (const Mapping& mapping : mappings_) all.push_back(mapping.physical);
  return all.empty() ? -1 : all[up_to(all.size() - 1)];
}

CUresult Program::fill_on(CUstream stream, const std::function<void(Effect)>& effect) {
  const Id id = some_memory();
  if (id < 0) return CUDA_SUCCESS;
  const std::uint64_t width = 1u << up_to(2);
  const auto value = static_cast<std::uint32_t>(random_());
  const std::shared_ptr<Contents> to = model_.memory(id).contents;
  const Bytes first = up_to(to->size() - 1);
  const Bytes count = up_to((to->size() - first) / width);
  const CUdeviceptr address = address_of(id) + first;
  const CUresult expected = address % width != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  const CUresult result =
      width == 1   ? CU(cuMemsetD8Async)(address, static_cast<std::uint8_t>(value), count, stream)
      : width == 2 ? CU(cuMemsetD16Async)(address, static_cast<std::uint16_t>(value), count, stream)
                   : CU(cuMemsetD32Async)(address, value, count, stream);
  expect("cuMemsetD" + std::to_string(8 * width) + "Async", expected, result);
  if (expected != CUDA_SUCCESS) return expected;
  effect([to, first, count, width, value] {
    for (Bytes i = 0; i < count * width; ++i) {
      (*to)[first + i] = static_cast<std::uint8_t>(value >> (8 * (i % width)));
    }
  });
  return CUDA_SUCCESS;
}

CUresult Program::copy_on(CUstream stream, const std::function<void(Effect)>& effect) {
  const Id id = some_memory();
  const Id other = some_memory();
  if (id < 0) return CUDA_SUCCESS;
  const std::shared_ptr<Contents> to = model_.memory(id).contents;
  const std::shared_ptr<Contents> from = model_.memory(other).contents;
  const Bytes bytes = 1 + up_to(std::min(to->size(), from->size()) - 1);
  if (to == from || one_in(2)) {
    expect("cuMemcpyHtoDAsync", CUDA_SUCCESS,
           CU(cuMemcpyHtoDAsync_v2)(address_of(id), host_bytes().data(), bytes, stream));
    effect([to, bytes] { std::copy_n(host_bytes().begin(), bytes, to->begin()); });
    return CUDA_SUCCESS;
  }
  expect("cuMemcpyDtoDAsync", CUDA_SUCCESS,
         CU(cuMemcpyDtoDAsync_v2)(address_of(id), address_of(other), bytes, stream));
  effect([to, from, bytes] { std::copy_n(from->begin(), bytes, to->begin()); });
  return CUDA_SUCCESS;
}

CUresult Program::kernel_on(CUstream stream, const std::function<void(Effect)>& effect) {
  const Id id = some_memory();
  const Id other = some_memory();
  if (id < 0) return CUDA_SUCCESS;
  const std::shared_ptr<Contents> to = model_.memory(id).contents;
  const std::shared_ptr<Contents> a = model_.memory(other).contents;
  std::uint64_t address = address_of(id);
  std::uint64_t other_address = address_of(other);
  std::uint64_t words = std::min(to->size(), a->size()) / 4;
  if (words == 0) return CUDA_SUCCESS;
  auto value = static_cast<std::uint32_t>(random_());
  const auto launch = [&](CUfunction kernel, void** arguments) {
    return CU(cuLaunchKernel)(kernel, 1 + static_cast<unsigned>(up_to(200)), 1, 1, 64, 1, 1, 0,
                              stream, arguments, nullptr);
  };
  if (one_in(2)) {
    void* arguments[] = {&address, &words, &value};
    expect("cuLaunchKernel(fill)", CUDA_SUCCESS, launch(fill_kernel_, arguments));
    effect([to, words, value] {
      for (Bytes i = 0; i < words * 4; ++i) {
        (*to)[i] = static_cast<std::uint8_t>(value >> (8 * (i % 4)));
      }
    });
    return CUDA_SUCCESS;
  }
  void* arguments[] = {&address, &address, &other_address, &words};
  expect("cuLaunchKernel(add)", CUDA_SUCCESS, launch(add_kernel_, arguments));
  effect([to, a, words] {
    for (Bytes word = 0; word < words; ++word) {
      std::uint32_t left = 0;
      std::uint32_t right = 0;
      bool known = true;
      for (unsigned i = 0; i < 4; ++i) {
        const std::int16_t l = (*to)[word * 4 + i];
        const std::int16_t r = (*a)[word * 4 + i];
        known = known && l >= 0 && r >= 0;
        left |= static_cast<std::uint32_t>(l & 0xff) << (8 * i);
        right |= static_cast<std::uint32_t>(r & 0xff) << (8 * i);
      }
      for (unsigned i = 0; i < 4; ++i) {
        (*to)[word * 4 + i] = known ? static_cast<std::int16_t>(((left + right) >> (8 * i)) & 0xff)
                                    : std::int16_t{-1};
      }
    }
  });
  return CUDA_SUCCESS;
}

CUresult Program::host_function_on(CUstream stream, const std::function<void(Effect)>& effect) {
  const auto run = [](void* data) {
    const HostFunction& function = *static_cast<HostFunction*>(data);
    function.ran.push_back(function.number);
  };
  const int number = static_cast<int>(host_functions_.size());
  host_functions_.push_back({ran_, number});
  expect("cuLaunchHostFunc", CUDA_SUCCESS,
         CU(cuLaunchHostFunc)(stream, run, &host_functions_.back()));
  effect([this, number] { should_run_.push_back(number); });
  return CUDA_SUCCESS;
}

CUresult Program::any_work_on(CUstream stream, const std::function<void(Effect)>& effect) {
  switch (up_to(3)) {
    case 3:
      return host_function_on(stream, effect);
    case 0:
      return fill_on(stream, effect);
    case 1:
      return copy_on(stream, effect);
    default:
      return kernel_on(stream, effect);
  }
}

// Once all streams that were given some have been waited for.
void Program::check_host_functions() {
  if (ran_ != should_run_) differ("host functions ran in another order, or not once");
}

void Program::compare(Id id) {
  const Contents& known = contents_of(id);
  std::vector<std::uint8_t> read(known.size());
  expect("cuMemcpyDtoH", CUDA_SUCCESS,
         CU(cuMemcpyDtoH_v2)(read.data(), address_of(id), read.size()));
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (known[i] >= 0) {
      expect_number("byte " + std::to_string(i), static_cast<std::uint64_t>(known[i]), read[i]);
    }
  }
}

void Program::step_fill() {
  fill_on(nullptr, now);
  if (one_in(2)) expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(nullptr));
}

void Program::step_copy() {
  if (streams_.empty() || one_in(2)) {
    copy_on(nullptr, now);
    return;
  }
  const Stream& stream = any(streams_);
  copy_on(stream.handle, now);
  expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(stream.handle));
  expect("cuStreamQuery(ended)", CUDA_SUCCESS, CU(cuStreamQuery)(stream.handle));
}

void Program::step_read() {
  const Id id = some_memory();
  if (id >= 0) compare(id);
}

void Program::step_kernel() {
  // Kernels and streams belong to the first context.
  if (streams_.empty()) return;
  const Stream& stream = any(streams_);
  for (std::uint64_t i = 1 + up_to(5); i > 0; --i) kernel_on(stream.handle, now);
  expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(stream.handle));
  const Id id = some_memory();
  if (id >= 0) compare(id);
}

void Program::step_wrong_range() {
  const Id id = some_memory();
  if (id < 0) return;
  const Bytes too_many = Bytes{1} << 43;
  expect("cuMemsetD8(past the end)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMemsetD8_v2)(address_of(id), 1, too_many));
  expect("cuMemcpyDtoD(past the end)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMemcpyDtoD_v2)(address_of(id), address_of(id), too_many));
  expect("cuMemcpyHtoD(nowhere)", CUDA_ERROR_INVALID_VALUE,
         CU(cuMemcpyHtoD_v2)(0x7000, host_bytes().data(), 16));
}

void Program::step_stream() {
  if (streams_.size() > 2 && one_in(2)) {
    const std::size_t which = up_to(streams_.size() - 1);
    const CUstream gone = streams_[which].handle;
    streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(which));
    expect("cuStreamDestroy", CUDA_SUCCESS, CU(cuStreamDestroy_v2)(gone));
    expect("cuStreamQuery(destroyed)", CUDA_ERROR_INVALID_HANDLE, CU(cuStreamQuery)(gone));
    return;
  }
  Stream stream;
  stream.flags = static_cast<unsigned>(up_to(2));
  const int wish = static_cast<int>(up_to(9)) - 7;
  stream.priority = std::clamp(wish, -5, 0);
  CU(cuCtxSetCurrent)(contexts_[0].handle);
  expect("cuStreamCreateWithPriority",
         stream.flags > CU_STREAM_NON_BLOCKING ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS,
         CU(cuStreamCreateWithPriority)(&stream.handle, stream.flags, wish));
  CU(cuCtxSetCurrent)(contexts_[current_].handle);
  if (stream.flags > CU_STREAM_NON_BLOCKING) return;
  streams_.push_back(stream);
  unsigned flags = 9;
  int priority = 9;
  expect("cuStreamGetFlags", CUDA_SUCCESS, CU(cuStreamGetFlags)(stream.handle, &flags));
  expect("cuStreamGetPriority", CUDA_SUCCESS, CU(cuStreamGetPriority)(stream.handle, &priority));
  expect_number("the flags", stream.flags, flags);
  expect_number("the priority", static_cast<std::uint64_t>(stream.priority),
                static_cast<std::uint64_t>(priority));
}

void Program::step_event() {
  if (events_.size() < 4) {
    Event event;
    const auto flags = static_cast<unsigned>(up_to(7));
    event.timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    const bool valid = (flags & CU_EVENT_INTERPROCESS) == 0 || !event.timed;
    CU(cuCtxSetCurrent)(contexts_[0].handle);
    expect("cuEventCreate(" + std::to_string(flags) + ")",
           valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
           CU(cuEventCreate)(&event.handle, flags));
    CU(cuCtxSetCurrent)(contexts_[current_].handle);
    if (valid) events_.push_back(event);
    return;
  }
  const std::size_t which = up_to(events_.size() - 1);
  Event& event = events_[which];
  if (event.recorded == 0) expect("cuEventQuery", CUDA_SUCCESS, CU(cuEventQuery)(event.handle));
  if (!streams_.empty()) {
    const Stream& stream = any(streams_);
    any_work_on(stream.handle, now);
    expect("cuEventRecord", CUDA_SUCCESS, CU(cuEventRecord)(event.handle, stream.handle));
    expect("cuStreamWaitEvent", CUDA_SUCCESS,
           CU(cuStreamWaitEvent)(any(streams_).handle, event.handle, 0));
    expect("cuEventSynchronize", CUDA_SUCCESS, CU(cuEventSynchronize)(event.handle));
    expect("cuEventQuery", CUDA_SUCCESS, CU(cuEventQuery)(event.handle));
    check_host_functions();
    event.recorded = ++records_;
  }
  Event& other = any(events_);
  const bool measured = event.timed && other.timed && event.recorded != 0 && other.recorded != 0;
  if (!measured) {
    float ms = 0;
    expect("cuEventElapsedTime", CUDA_ERROR_INVALID_HANDLE,
           CU(cuEventElapsedTime_v2)(&ms, event.handle, other.handle));
  } else if (other.recorded != event.recorded) {
    float ms = 0;
    expect("cuEventElapsedTime", CUDA_SUCCESS,
           CU(cuEventElapsedTime_v2)(&ms, other.handle, event.handle));
    expect_number("time goes on", 1, (other.recorded < event.recorded) == (ms >= 0) ? 1 : 0);
  }
  if (!one_in(3)) return;
  const CUevent gone = event.handle;
  events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(which));
  expect("cuEventDestroy", CUDA_SUCCESS, CU(cuEventDestroy_v2)(gone));
  expect("cuEventQuery(destroyed)", CUDA_ERROR_INVALID_HANDLE, CU(cuEventQuery)(gone));
}

// Other streams see what was there before.
void Program::check_unchanged() {
  const Id id = some_memory();
  if (id < 0) return;
  std::vector<std::uint8_t> read(contents_of(id).size());
  CUstream free = nullptr;
  CU(cuStreamCreate)(&free, CU_STREAM_NON_BLOCKING);
  expect("cuMemcpyDtoHAsync", CUDA_SUCCESS,
         CU(cuMemcpyDtoHAsync_v2)(read.data(), address_of(id), read.size(), free));
  expect("cuStreamSynchronize", CUDA_SUCCESS, CU(cuStreamSynchronize)(free));
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::int16_t known = contents_of(id)[i];
    if (known >= 0) {
      expect_number("a byte before its time", static_cast<std::uint64_t>(known), read[i]);
    }
  }
  CU(cuStreamDestroy_v2)(free);
}

// Nothing of what the streams were given happens before the word changes, all of it after, in
// order; and events tell how long a kernel took to the nanosecond.
void Program::run_behind_gate(const Gate& gate) {
  std::uint64_t spin_ns = 1;
  void* arguments[] = {&spin_ns};
  const auto spin = [&](CUstream stream) {
    expect("cuLaunchKernel(spin)", CUDA_SUCCESS,
           CU(cuLaunchKernel)(spin_kernel_, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
  };
  spin(nullptr);  // the GPU turns to this context before anything is measured
  expect("cuCtxSynchronize", CUDA_SUCCESS, CU(cuCtxSynchronize)());
  expect("cuStreamWaitValue32", CUDA_SUCCESS,
         CU(cuStreamWaitValue32_v2)(gate.gated, reinterpret_cast<CUdeviceptr>(gate.word), 1,
                                    CU_STREAM_WAIT_VALUE_GEQ));
  std::vector<Effect> later;
  const auto keep = [&](Effect effect) { later.push_back(std::move(effect)); };
  expect("cuEventRecord", CUDA_SUCCESS, CU(cuEventRecord)(gate.started, gate.gated));
  spin_ns = 1 + up_to(300'000);
  spin(gate.gated);
  expect("cuEventRecord", CUDA_SUCCESS, CU(cuEventRecord)(gate.ended, gate.gated));
  for (std::uint64_t i = up_to(4); i > 0; --i) any_work_on(gate.gated, keep);
  expect("cuEventRecord", CUDA_SUCCESS, CU(cuEventRecord)(gate.order, gate.gated));
  expect("cuStreamWaitEvent", CUDA_SUCCESS, CU(cuStreamWaitEvent)(gate.behind, gate.order, 0));
  for (std::uint64_t i = up_to(4); i > 0; --i) any_work_on(gate.behind, keep);

  expect("cuStreamQuery(gated)", CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(gate.gated));
  expect("cuStreamQuery(behind)", CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(gate.behind));
  expect("cuEventQuery(gated)", CUDA_ERROR_NOT_READY, CU(cuEventQuery)(gate.started));
  float ms = 0;
  expect("cuEventElapsedTime(gated)", CUDA_ERROR_NOT_READY,
         CU(cuEventElapsedTime_v2)(&ms, gate.started, gate.ended));
  check_unchanged();

  const std::uint32_t open = 1;
  std::memcpy(gate.word, &open, sizeof(open));
  for (const Effect& effect : later) effect();
  expect("cuStreamSynchronize(behind)", CUDA_SUCCESS, CU(cuStreamSynchronize)(gate.behind));
  expect("cuStreamQuery(was gated)", CUDA_SUCCESS, CU(cuStreamQuery)(gate.gated));
  check_host_functions();
  expect("cuEventElapsedTime", CUDA_SUCCESS,
         CU(cuEventElapsedTime_v2)(&ms, gate.started, gate.ended));
  const auto exact = static_cast<float>(static_cast<double>(spin_ns) / 1e6);
  if (ms == exact) return;
  differ("a spin of " + std::to_string(spin_ns) + " ns took " + std::to_string(ms));
}

void Program::step_gate() {
  CU(cuCtxSetCurrent)(contexts_[0].handle);
  Gate gate;
  CU(cuStreamCreate)(&gate.gated, CU_STREAM_NON_BLOCKING);
  CU(cuStreamCreate)(&gate.behind, CU_STREAM_NON_BLOCKING);
  CU(cuEventCreate)(&gate.started, 0);
  CU(cuEventCreate)(&gate.ended, 0);
  CU(cuEventCreate)(&gate.order, CU_EVENT_DISABLE_TIMING);
  CU(cuMemHostAlloc)(&gate.word, 4, 0);
  run_behind_gate(gate);
  for (CUevent event : {gate.started, gate.ended, gate.order}) CU(cuEventDestroy_v2)(event);
  for (CUstream stream : {gate.gated, gate.behind}) CU(cuStreamDestroy_v2)(stream);
  expect("cuMemFreeHost", CUDA_SUCCESS, CU(cuMemFreeHost)(gate.word));
  CU(cuCtxSetCurrent)(contexts_[current_].handle);
}

}  // namespace aliquot::reference
