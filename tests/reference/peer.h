// The second process of a random program: does single driver calls on request, so that the first
// one knows in which order things happen between them.
#pragma once

#include <cstdint>
#include <vector>

#include "driver_abi/cuda_types.h"
#include "reference/model.h"

namespace aliquot::reference {

struct PeerRequest {
  enum class What : std::uint32_t {
    kStart,
    kOpen,
    kFill,
    kRead,
    kClose,
    kAllocate,
    kFree,
    kOpenPool,  // with the pool's descriptor, and `pointer` into it
    kClosePool,
  };
  What what = What::kStart;
  std::uint32_t value = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  CUipcMemHandle handle{};
  CUmemoryPool pool = nullptr;  // as the second process named it
  CUmemPoolPtrExportData pointer{};
};

struct PeerAnswer {
  CUresult result = CUDA_SUCCESS;
  std::uint64_t address = 0;
  CUmemoryPool pool = nullptr;
  std::uint8_t data[256] = {};
};

// The first process's end.
struct Peer {
  int socket = -1;
  int pid = 0;
  bool started = false;
  Id context = -1;
  struct Opened {
    CUdeviceptr address;
    Id share;
    std::shared_ptr<Contents> contents;
  };
  std::vector<Opened> opened;
  std::map<Id, CUdeviceptr> memory;  // of its own

  // `descriptor` goes with it; -1: none.
  PeerAnswer ask(const PeerRequest& request, int descriptor = -1) const;
};

// What the second process does until the first one closes the socket.
[[noreturn]] void serve_as_peer(int socket);

}  // namespace aliquot::reference
