#include "reference/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "simdriver/channel/socket.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

CUresult start() {
  CUcontext context = nullptr;
  if (const CUresult result = CU(cuInit)(0)) return result;
  if (const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, 0)) return result;
  return CU(cuCtxSetCurrent)(context);
}

CUresult open_pool(const PeerRequest& request, int descriptor, PeerAnswer& answer) {
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUdeviceptr address = 0;
  CUmemPoolPtrExportData pointer = request.pointer;
  if (const CUresult result = CU(cuMemPoolImportFromShareableHandle)(
          &answer.pool, simdriver::test::as_os_handle(descriptor), kType, 0)) {
    return result;
  }
  const CUresult result = CU(cuMemPoolImportPointer)(&address, answer.pool, &pointer);
  answer.address = address;
  return result;
}

CUresult close_pool(const PeerRequest& request) {
  if (const CUresult result = CU(cuMemFreeAsync)(request.address, nullptr)) return result;
  if (const CUresult result = CU(cuStreamSynchronize)(nullptr)) return result;
  return CU(cuMemPoolDestroy)(request.pool);
}

CUresult perform(const PeerRequest& request, int descriptor, PeerAnswer& answer) {
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
    case What::kOpenPool:
      return open_pool(request, descriptor, answer);
    case What::kClosePool:
      return close_pool(request);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

PeerAnswer Peer::ask(const PeerRequest& request, int descriptor) const {
  PeerAnswer answer;
  answer.result = CUDA_ERROR_UNKNOWN;  // as long as nothing came
  const auto bytes = std::as_bytes(std::span(&request, 1));
  const std::span<const int> descriptors(&descriptor, descriptor < 0 ? 0 : 1);
  if (simdriver::send_datagram(socket, bytes, descriptors)) {
    [[maybe_unused]] const ssize_t got = recv(socket, &answer, sizeof(answer), 0);
  }
  return answer;
}

void serve_as_peer(int socket) {
  PeerRequest request;
  for (;;) {
    const auto got = simdriver::receive_datagram(socket);
    if (!got || got->bytes.size() != sizeof(request)) break;
    std::memcpy(&request, got->bytes.data(), sizeof(request));
    PeerAnswer answer;
    answer.result = perform(request, got->fds.empty() ? -1 : got->fds[0].get(), answer);
    if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) break;
  }
  _exit(0);
}

}  // namespace aliquot::reference
