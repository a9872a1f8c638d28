#include "reference/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

CUresult start() {
  CUcontext context = nullptr;
  if (const CUresult result = CU(cuInit)(0)) return result;
  if (const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, 0)) return result;
  return CU(cuCtxSetCurrent)(context);
}

CUresult perform(const PeerRequest& request, PeerAnswer& answer) {
  using What = PeerRequest::What;
  CUdeviceptr address = request.address;
  switch (request.what) {
    case What::kStart:
      return start();
    case What::kOpen: {
      const CUresult result =
          CU(cuIpcOpenMemHandle_v2)(&address, request.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
      answer.address = address;
      return result;
    }
    case What::kFill:
      return CU(cuMemsetD8_v2)(address, static_cast<unsigned char>(request.value), request.bytes);
    case What::kRead:
      return CU(cuMemcpyDtoH_v2)(answer.data, address, request.bytes);
    case What::kClose:
      return CU(cuIpcCloseMemHandle)(address);
    case What::kAllocate: {
      const CUresult result = CU(cuMemAlloc_v2)(&address, request.bytes);
      answer.address = address;
      return result;
    }
    case What::kFree:
      return CU(cuMemFree_v2)(address);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

PeerAnswer Peer::ask(const PeerRequest& request) const {
  PeerAnswer answer;
  answer.result = CUDA_ERROR_UNKNOWN;  // as long as nothing came
  if (send(socket, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request)) {
    [[maybe_unused]] const ssize_t got = recv(socket, &answer, sizeof(answer), 0);
  }
  return answer;
}

void serve_as_peer(int socket) {
  PeerRequest request;
  while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
    PeerAnswer answer;
    answer.result = perform(request, answer);
    if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) break;
  }
  _exit(0);
}

}  // namespace aliquot::reference
