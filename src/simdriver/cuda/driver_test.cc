// The simulated driver as a program sees it: one process, one machine of eight GPUs.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x8");

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
  }
  void TearDown() override {
    CU(cuCtxSetCurrent)(nullptr);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
  }
  CUfunction kernel(const char* name) {
    if (module_ == nullptr) {
      EXPECT_EQ(CU(cuModuleLoadData)(&module_, kBuiltinPtx), CUDA_SUCCESS);
    }
    CUfunction function = nullptr;
    EXPECT_EQ(CU(cuModuleGetFunction)(&function, module_, name), CUDA_SUCCESS);
    return function;
  }
  CUresult launch(CUfunction function, CUstream stream, void** arguments) {
    return CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
  }
  void spin(CUstream stream, std::uint64_t ns) {
    void* arguments[] = {&ns};
    ASSERT_EQ(launch(kernel("aliquot_spin"), stream, arguments), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

TEST_F(Driver, ShowsTheMachinesGpus) {
  int count = 0;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 8);
  char name[64] = {};
  EXPECT_EQ(CU(cuDeviceGetName)(name, sizeof(name), 3), CUDA_SUCCESS);
  EXPECT_STREQ(name, "NVIDIA A100-SXM4-80GB");
  int value = 0;
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 108);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, 9999, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, 1, 8), CUDA_ERROR_INVALID_DEVICE);
  char bus[32] = {};
  EXPECT_EQ(CU(cuDeviceGetPCIBusId)(bus, sizeof(bus), 2), CUDA_SUCCESS);
  CUdevice device = -1;
  EXPECT_EQ(CU(cuDeviceGetByPCIBusId)(&device, bus), CUDA_SUCCESS);
  EXPECT_EQ(device, 2);
}

TEST_F(Driver, AContextEndsWhenItsLastUserDetaches) {
  const std::uint64_t before = free_bytes();
  CUcontext own = nullptr;
  CUcontext attached = nullptr;
  unsigned int version = 0;
  ASSERT_EQ(CU(cuCtxCreate_v2)(&own, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxAttach)(&attached, 0), CUDA_SUCCESS);
  EXPECT_EQ(attached, own);
  EXPECT_EQ(CU(cuCtxDetach)(own), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxGetApiVersion)(own, &version), CUDA_SUCCESS);
  EXPECT_LT(free_bytes(), before);
  EXPECT_EQ(CU(cuCtxDetach)(own), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxGetApiVersion)(own, &version), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxDetach)(own), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(Driver, APrimaryContextIsNobodysToDetach) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CU(cuCtxDetach)(context_), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Driver, KeepsWhatIsCopiedToTheDevice) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, 5 * kMiB), CUDA_SUCCESS);
  std::vector<int> in(kMiB);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7);
  ASSERT_EQ(CU(cuMemcpyHtoD_v2)(memory + 1000, in.data(), in.size() * 4), CUDA_SUCCESS);
  std::vector<int> out(in.size());
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(out.data(), memory + 1000, out.size() * 4), CUDA_SUCCESS);
  EXPECT_EQ(in, out);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(out.data(), memory + 2 * kMiB, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(memory, in.data(), 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, CountsMemoryInGranulesAndGivesItBack) {
  size_t before = 0;
  size_t total = 0;
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&before, &total), CUDA_SUCCESS);
  std::vector<CUdeviceptr> small(100);
  for (auto& address : small) ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 1000), CUDA_SUCCESS);
  size_t after = 0;
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&after, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(before - after, 2 * kMiB);
  for (const auto address : small) EXPECT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&after, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(after, before);
}

TEST_F(Driver, RefusesTheFirstByteThatDoesNotFit) {
  size_t free = 0;
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&free, nullptr), CUDA_SUCCESS);
  free = free / (2 * kMiB) * (2 * kMiB);
  CUdeviceptr all = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&all, free + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(all, 0u);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&all, free), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuMemFree_v2)(all), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&more, 1), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(more), CUDA_SUCCESS);
}

TEST_F(Driver, FillsAndChecksSeventyGigabytes) {
  CUdeviceptr memory = 0;
  const std::uint64_t bytes = 70ull << 30;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, bytes), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32_v2)(memory, 0x01020304, bytes / 4), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(&word, memory + bytes - 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 0x01020304u);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
}

TEST_F(Driver, ComputesWithItsOwnKernels) {
  CUdeviceptr memory = 0;
  std::uint64_t words = 1000;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, 3 * 4096), CUDA_SUCCESS);
  CUdeviceptr a = memory;
  CUdeviceptr b = memory + 4096;
  CUdeviceptr sum = memory + 8192;
  std::uint32_t three = 3;
  std::uint32_t four = 4;
  std::uint32_t seven = 7;
  void* fill_a[] = {&a, &words, &three};
  void* fill_b[] = {&b, &words, &four};
  void* add[] = {&sum, &a, &b, &words};
  void* verify[] = {&sum, &words, &seven, &a};
  ASSERT_EQ(launch(kernel("aliquot_fill"), nullptr, fill_a), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("aliquot_fill"), nullptr, fill_b), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("aliquot_add"), nullptr, add), CUDA_SUCCESS);
  std::uint32_t got = 0;
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(&got, sum + 999 * 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, 7u);
  ASSERT_EQ(launch(kernel("aliquot_verify"), nullptr, verify), CUDA_SUCCESS);
  std::uint64_t wrong = 1;
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(&wrong, a, 8), CUDA_SUCCESS);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
}

TEST_F(Driver, TakesTheTimeThatAKernelSpins) {
  const auto start = std::chrono::steady_clock::now();
  spin(nullptr, 200'000'000);
  EXPECT_LT(seconds_since(start), 0.15);
  EXPECT_EQ(CU(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_GE(seconds_since(start), 0.200);
  EXPECT_EQ(CU(cuStreamQuery)(nullptr), CUDA_SUCCESS);
}

TEST_F(Driver, MeasuresTimeBetweenEvents) {
  kernel("aliquot_spin");
  CUevent begin = nullptr;
  CUevent end = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&begin, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&end, 0), CUDA_SUCCESS);
  float ms = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(CU(cuEventRecord)(begin, nullptr), CUDA_SUCCESS);
  spin(nullptr, 50'000'000);
  ASSERT_EQ(CU(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, begin, end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, begin, end), CUDA_SUCCESS);
  EXPECT_GE(ms, 50.0);
  EXPECT_LT(ms, 500.0);  // the host may be slow between the calls
  EXPECT_EQ(CU(cuEventDestroy_v2)(begin), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventDestroy_v2)(begin), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventDestroy_v2)(end), CUDA_SUCCESS);
}

TEST_F(Driver, OrdersStreamsByEventsAndTheDefaultStreamWithAll) {
  CUstream one = nullptr;
  CUstream two = nullptr;
  CUstream apart = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&one, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamCreate)(&two, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamCreate)(&apart, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  CUevent event = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  spin(one, 100'000'000);
  ASSERT_EQ(CU(cuEventRecord)(event, one), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(two, event, 0), CUDA_SUCCESS);
  spin(two, 100'000'000);
  EXPECT_EQ(CU(cuStreamSynchronize)(apart), CUDA_SUCCESS);
  EXPECT_LT(seconds_since(start), 0.1);
  spin(nullptr, 100'000'000);
  EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
  EXPECT_GE(seconds_since(start), 0.300);
  for (const CUstream stream : {one, two, apart}) {
    EXPECT_EQ(CU(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  }
  EXPECT_EQ(CU(cuEventDestroy_v2)(event), CUDA_SUCCESS);
}

TEST_F(Driver, RunsHostFunctionsInOrderWithCopies) {
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
  int* host = nullptr;
  ASSERT_EQ(CU(cuMemHostAlloc)(reinterpret_cast<void**>(&host), 64, 0), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, 64), CUDA_SUCCESS);
  host[0] = 1;
  spin(stream, 10'000'000);
  ASSERT_EQ(CU(cuLaunchHostFunc)(
                stream, [](void* data) { static_cast<int*>(data)[0] = 42; }, host),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync_v2)(memory, host, 4, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoHAsync_v2)(host + 1, memory, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(host[1], 42);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFreeHost)(host), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
}

TEST_F(Driver, CallsBackInOrderWithTheStreamsWork) {
  struct Seen {
    std::uint32_t word = 0;
    std::uint32_t when_called = 0;
    CUstream stream = nullptr;
    CUresult status = CUDA_ERROR_UNKNOWN;
  } seen;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, 4), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32Async)(memory, 7, 1, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoHAsync_v2)(&seen.word, memory, 4, stream), CUDA_SUCCESS);
  const CUstreamCallback callback = [](CUstream on, CUresult status, void* data) {
    Seen& told = *static_cast<Seen*>(data);
    told.when_called = told.word;
    told.stream = on;
    told.status = status;
  };
  EXPECT_EQ(CU(cuStreamAddCallback)(stream, nullptr, &seen, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuStreamAddCallback)(stream, callback, &seen, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuStreamAddCallback)(stream, callback, &seen, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(seen.when_called, 7u);
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.status, CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
}

TEST_F(Driver, WaitsForAValueThatTheHostWrites) {
  std::uint32_t* flag = nullptr;
  ASSERT_EQ(CU(cuMemHostAlloc)(reinterpret_cast<void**>(&flag), 64, 0), CUDA_SUCCESS);
  const auto address = reinterpret_cast<CUdeviceptr>(flag);
  ASSERT_EQ(CU(cuStreamWaitValue32_v2)(nullptr, address, 5, CU_STREAM_WAIT_VALUE_GEQ),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWriteValue32_v2)(nullptr, address + 4, 9, 0), CUDA_SUCCESS);
  usleep(5000);
  EXPECT_EQ(CU(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(flag[1], 0u);
  std::atomic_ref(flag[0]).store(6);
  EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(flag[1], 9u);
  EXPECT_EQ(CU(cuMemFreeHost)(flag), CUDA_SUCCESS);
}

TEST_F(Driver, KeepsManagedMemoryAtAnAddressThatTheHostCanUse) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(CU(cuMemAllocManaged)(&managed, 4 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  auto* words = reinterpret_cast<std::uint32_t*>(managed);
  words[10] = 77;
  std::uint32_t got = 0;
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(&got, managed + 40, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, 77u);
  ASSERT_EQ(CU(cuMemsetD32_v2)(managed, 5, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(words[kMiB - 1], 5u);
  unsigned is_managed = 0;
  EXPECT_EQ(CU(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed),
            CUDA_SUCCESS);
  EXPECT_EQ(is_managed, 1u);
  EXPECT_EQ(CU(cuMemFree_v2)(managed), CUDA_SUCCESS);
}

TEST_F(Driver, GivesTheSameFunctionByBothLookUps) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuMemAlloc", &function, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, dlsym(driver_handle(), "cuMemAlloc_v2"));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(CU(cuGetProcAddress_v2)("", &function, 0, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuMemGetMemPool", &function, 12000, 0, &status),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(Driver, FailsTheCallThatItWasToldToFail) {
  auto admin = Client::connect(machine_directory("test") / "socket");
  ASSERT_TRUE(admin);
  FailNth order{};
  std::string_view("cuMemAlloc_v2").copy(order.symbol.data(), order.symbol.size() - 1);
  order.nth = 2;
  order.result = CUDA_ERROR_UNKNOWN;
  const auto ordered = admin->ask(Op::kFailNth, order);
  ASSERT_TRUE(ordered);
  EXPECT_EQ(ordered->result, 0);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&first, 4096), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&second, 4096), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(second, 0u);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&second, 4096), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(first), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(second), CUDA_SUCCESS);
  ASSERT_TRUE(admin->ask(Op::kClearFaults));
}

TEST_F(Driver, NeverAnswersTheQuestionForPrivateTables) {
  const void* table = &table;
  const CUuuid any{};
  EXPECT_EQ(CU(cuGetExportTable)(&table, &any), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
}

TEST_F(Driver, LetsGoOfThreadsThatWaitInAContextThatIsDestroyed) {
  CUcontext other = nullptr;
  ASSERT_EQ(CU(cuCtxCreate_v2)(&other, 0, 0), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, kBuiltinPtx), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&function, module, "aliquot_spin"), CUDA_SUCCESS);
  std::uint64_t ns = 60'000'000'000;
  void* arguments[] = {&ns};
  ASSERT_EQ(launch(function, nullptr, arguments), CUDA_SUCCESS);
  std::atomic<int> result = -1;
  std::atomic<bool> ready = false;
  std::thread waiter([&] {
    CU(cuCtxSetCurrent)(other);
    ready = true;
    result = CU(cuCtxSynchronize)();
  });
  while (!ready) usleep(1000);
  usleep(20000);
  EXPECT_EQ(CU(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
  waiter.join();
  EXPECT_EQ(result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
}

TEST_F(Driver, WaitsForAnEventWhoseStreamIsGone) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  spin(stream, 10'000'000);
  ASSERT_EQ(CU(cuEventRecord)(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(nullptr, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventDestroy_v2)(event), CUDA_SUCCESS);
}

TEST_F(Driver, ServesThreadsSideBySide) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      CU(cuCtxSetCurrent)(context_);
      CUstream stream = nullptr;
      CUdeviceptr memory = 0;
      if (CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != 0) ++wrong;
      if (CU(cuMemAlloc_v2)(&memory, 4096) != 0) ++wrong;
      for (std::uint32_t i = 0; i < 200; ++i) {
        std::uint32_t in = i * 16 + static_cast<std::uint32_t>(t);
        std::uint32_t out = 0;
        CU(cuMemcpyHtoDAsync_v2)(memory, &in, 4, stream);
        CU(cuMemcpyDtoHAsync_v2)(&out, memory, 4, stream);
        if (CU(cuStreamSynchronize)(stream) != 0 || out != in) ++wrong;
      }
      if (CU(cuMemFree_v2)(memory) != 0 || CU(cuStreamDestroy_v2)(stream) != 0) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A captured fill and a host function, in memory of the stream's pool; false: something failed.
bool works_in_a_stream(CUstream stream, std::atomic<int>& hosted) {
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  CUevent event = nullptr;
  unsigned char byte = 0;
  const auto count = [](void* at) { ++*static_cast<std::atomic<int>*>(at); };
  return CU(cuMemAllocAsync)(&memory, kMiB, stream) == 0 &&
         CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0 &&
         CU(cuMemsetD8Async)(memory, 5, kMiB, stream) == 0 &&
         CU(cuLaunchHostFunc)(stream, count, &hosted) == 0 &&
         CU(cuStreamEndCapture)(stream, &graph) == 0 &&
         CU(cuGraphInstantiateWithFlags)(&ready, graph, 0) == 0 &&
         CU(cuGraphLaunch)(ready, stream) == 0 && CU(cuEventCreate)(&event, 0) == 0 &&
         CU(cuEventRecord)(event, stream) == 0 && CU(cuEventSynchronize)(event) == 0 &&
         CU(cuMemcpyDtoHAsync_v2)(&byte, memory + kMiB - 1, 1, stream) == 0 &&
         CU(cuMemFreeAsync)(memory, stream) == 0 && CU(cuStreamSynchronize)(stream) == 0 &&
         CU(cuEventDestroy_v2)(event) == 0 && CU(cuGraphExecDestroy)(ready) == 0 &&
         CU(cuGraphDestroy)(graph) == 0 && byte == 5;
}

TEST_F(Driver, ServesThreadsOfTwoContextsSideBySide) {
  constexpr int kRounds = 20;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  std::atomic<int> hosted = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        CUcontext own = nullptr;
        CUstream stream = nullptr;
        if (t % 2 == 0) {
          wrong += CU(cuCtxSetCurrent)(context_) != 0;
        } else {
          wrong += CU(cuCtxCreate_v2)(&own, 0, 0) != 0;
        }
        wrong += CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != 0;
        wrong += !works_in_a_stream(stream, hosted);
        wrong += CU(cuStreamDestroy_v2)(stream) != 0;
        if (own != nullptr) wrong += CU(cuCtxDestroy_v2)(own) != 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(hosted, 4 * kRounds);
}

}  // namespace
}  // namespace aliquot::simdriver::test
