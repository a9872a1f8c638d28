// Answers to requests: one file per subject (the high byte of Op), one function each, in one
// visible table. A handler may change the machine and the session; it never waits. The server's
// loop only.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "simdriver/channel/messages.h"
#include "simdriver/server/machine_state.h"

namespace aliquot::simdriver {

// The CUresults that handlers give.
enum : std::int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeviceUnavailable = 46,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotReady = 600,
  kNotSupported = 801,
  kMpsMaxClientsReached = 808,
  kSimulatorOutOfHostMemory = 304,  // CUDA_ERROR_OPERATING_SYSTEM: the host's budget, not the GPU
};

struct Call {
  MachineState& machine;
  Session& session;
  Op op;
  std::span<const std::byte> payload;
  std::vector<UniqueFd>& fds;  // that came with the request

  std::vector<std::byte> reply;
  std::vector<int> reply_fds;  // borrowed until the answer is sent
  std::uint64_t cost_ns = 0;   // what the driver's call costs, from the model's timing

  // The payload as a T; nullptr when it is not exactly one.
  template <typename T>
  const T* as(T& storage) const {
    if (payload.size() != sizeof(T)) return nullptr;
    std::memcpy(&storage, payload.data(), sizeof(T));
    return &storage;
  }
  template <typename T>
  std::int32_t answer(const T& value) {
    reply.resize(sizeof(T));
    std::memcpy(reply.data(), &value, sizeof(T));
    return kSuccess;
  }
};

// Each returns the result for the answer's header.
std::int32_t handle_session(Call& call);
std::int32_t handle_context(Call& call);
std::int32_t handle_memory(Call& call);
std::int32_t handle_work(Call& call);
std::int32_t handle_telemetry(Call& call);
std::int32_t handle_control(Call& call);

// Unknown subjects are kNotSupported.
std::int32_t handle(Call& call);

}  // namespace aliquot::simdriver
