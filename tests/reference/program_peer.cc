// Steps with a second process: memory opened by handle, filled and read from both sides, freed in
// either order, and the process killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {

using What = PeerRequest::What;

void Program::step_peer() {
  if (peer_.socket < 0) return;
  if (!peer_.started) {
    PeerRequest start;
    const CUresult expected = model_.open_context(0, peer_.context);
    expect("other process: context", expected, peer_.ask(start).result);
    peer_.started = expected == CUDA_SUCCESS;
    return;
  }
  switch (up_to(5)) {
    case 0:
    case 1:
      return peer_opens();
    case 5:
      return peer_uses_pool();
    case 2: {
      PeerRequest request;
      request.what = What::kAllocate;
      request.bytes = some_bytes();
      Id id = -1;
      const CUresult expected = model_.linear(peer_.context, request.bytes, id);
      const PeerAnswer answer = peer_.ask(request);
      expect("other process: cuMemAlloc(" + std::to_string(request.bytes) + ")", expected,
             answer.result);
      if (id >= 0) peer_.memory[id] = answer.address;
      return;
    }
    case 3: {
      if (peer_.memory.empty()) return;
      const auto [id, address] = *peer_.memory.begin();
      PeerRequest request;
      request.what = What::kFree;
      request.address = address;
      expect("other process: cuMemFree", CUDA_SUCCESS, peer_.ask(request).result);
      model_.release(id);
      peer_.memory.erase(id);
      return;
    }
    default:
      return peer_closes();
  }
}

void Program::peer_opens() {
  std::vector<Id> all = mine({Kind::kLinear});
  std::erase_if(all, [&](Id id) { return model_.memory(id).context != contexts_[0].id; });
  if (all.empty()) return;
  const Id id = all[up_to(all.size() - 1)];
  PeerRequest request;
  expect("cuIpcGetMemHandle", CUDA_SUCCESS, CU(cuIpcGetMemHandle)(&request.handle, address_of(id)));
  CUdeviceptr own = 0;
  expect("cuIpcOpenMemHandle(own)", CUDA_ERROR_INVALID_CONTEXT,
         CU(cuIpcOpenMemHandle_v2)(&own, request.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  request.what = What::kOpen;
  const PeerAnswer opened = peer_.ask(request);
  expect("other process: cuIpcOpenMemHandle", CUDA_SUCCESS, opened.result);
  const Id share = model_.share(id);
  model_.open_shared(share);
  peer_.opened.push_back({opened.address, share, model_.memory(id).contents});

  const std::shared_ptr<Contents> contents = peer_.opened.back().contents;
  request.what = What::kRead;
  request.address = opened.address;
  request.bytes = std::min<Bytes>(contents->size(), sizeof(PeerAnswer::data));
  const PeerAnswer read = peer_.ask(request);
  expect("other process: cuMemcpyDtoH", CUDA_SUCCESS, read.result);
  for (Bytes i = 0; i < request.bytes; ++i) {
    if ((*contents)[i] >= 0) {
      expect_number("a byte as the other sees it", static_cast<std::uint64_t>((*contents)[i]),
                    read.data[i]);
    }
  }
  request.what = What::kFill;
  request.value = static_cast<std::uint32_t>(up_to(255));
  expect("other process: cuMemsetD8", CUDA_SUCCESS, peer_.ask(request).result);
  std::fill_n(contents->begin(), request.bytes, static_cast<std::int16_t>(request.value));
  compare(id);
}

// A pool by its descriptor and memory in it by what names it there: it costs the other nothing, is
// the same for both, and is this process's to free.
void Program::peer_uses_pool() {
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemPoolProps properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handle_types = kType;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  Id id = -1;
  const Id pool_id = model_.make_pool(0, false);
  expect("cuMemPoolCreate", CUDA_SUCCESS, CU(cuMemPoolCreate)(&pool, &properties));
  const Bytes bytes = 256 + some_bytes();
  expect("cuMemAllocFromPoolAsync(" + std::to_string(bytes) + ")",
         model_.from_pool(pool_id, bytes, id),
         CU(cuMemAllocFromPoolAsync)(&address, bytes, pool, nullptr));
  if (id >= 0) {
    PeerRequest request;
    int descriptor = -1;
    expect("cuMemsetD8", CUDA_SUCCESS, CU(cuMemsetD8_v2)(address, 33, 256));
    expect("cuMemPoolExportToShareableHandle", CUDA_SUCCESS,
           CU(cuMemPoolExportToShareableHandle)(&descriptor, pool, kType, 0));
    expect("cuMemPoolExportPointer", CUDA_SUCCESS,
           CU(cuMemPoolExportPointer)(&request.pointer, address));
    request.what = What::kOpenPool;
    const PeerAnswer opened = peer_.ask(request, descriptor);
    close(descriptor);
    expect("other process: pool", CUDA_SUCCESS, opened.result);
    check_books();

    request.address = opened.address;
    request.pool = opened.pool;
    request.bytes = 256;
    request.what = What::kRead;
    expect_number("a byte of the pool as the other sees it", 33, peer_.ask(request).data[255]);
    request.what = What::kFill;
    request.value = 44;
    expect("other process: cuMemsetD8", CUDA_SUCCESS, peer_.ask(request).result);
    unsigned char byte = 0;
    expect("cuMemcpyDtoH", CUDA_SUCCESS, CU(cuMemcpyDtoH_v2)(&byte, address + 255, 1));
    expect_number("a byte that the other wrote", 44, byte);
    request.what = What::kClosePool;
    expect("other process: pool closed", CUDA_SUCCESS, peer_.ask(request).result);
    expect("cuMemFree", CUDA_SUCCESS, CU(cuMemFree_v2)(address));
    model_.release(id);
  }
  expect("cuMemPoolDestroy", CUDA_SUCCESS, CU(cuMemPoolDestroy)(pool));
  model_.destroy_pool(pool_id);
}

// One of what it opened, or all of it at once: by being killed.
void Program::peer_closes() {
  if (one_in(3)) {
    kill(peer_.pid, SIGKILL);
    waitpid(peer_.pid, nullptr, 0);
    peer_.socket = -1;
    for (const Peer::Opened& opened : peer_.opened) model_.close_shared(opened.share);
    model_.close_context(peer_.context);
    // The server hears of it in its own time.
    for (int i = 0; i < 5000; ++i) {
      if (simdriver::test::free_bytes(0) == model_.free_bytes(0)) break;
      usleep(1000);
    }
    return;
  }
  if (peer_.opened.empty()) return;
  PeerRequest request;
  request.what = What::kClose;
  request.address = peer_.opened.back().address;
  expect("other process: cuIpcCloseMemHandle", CUDA_SUCCESS, peer_.ask(request).result);
  model_.close_shared(peer_.opened.back().share);
  peer_.opened.pop_back();
}

}  // namespace aliquot::reference
