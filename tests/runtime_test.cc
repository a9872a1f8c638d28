// The small runtime on a simulated machine: the launch ABI as a compiler's stubs call it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace {

namespace fs = std::filesystem;
namespace simdriver = aliquot::simdriver;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
using Stream = struct StreamOf*;
using Event = struct EventOf*;
using Graph = struct GraphOf*;
using GraphExec = struct GraphExecOf*;
using Kernel = struct KernelOf*;

}  // namespace

// As a compiler declares them; the archive has no header of its own for this side.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int limit, void* tid, void* bid, void* block, void* grid, int* warp);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external,
                       std::size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, Stream stream);
int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream);
int __cudaGetKernel(Kernel* kernel, const void* host);
int __cudaLaunchKernel(Kernel kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                       Stream stream);
int cudaLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                     Stream stream);
int cudaGetSymbolAddress(void** address, const void* host);
int cudaGetDeviceCount(int* count);
int cudaSetDevice(int device);
int cudaGetDevice(int* device);
int cudaGetLastError();
const char* cudaGetErrorName(int error);
int cudaMemGetInfo(std::size_t* free, std::size_t* total);
int cudaMalloc(void** pointer, std::size_t bytes);
int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags);
int cudaMallocAsync(void** pointer, std::size_t bytes, Stream stream);
int cudaFree(void* pointer);
int cudaFreeAsync(void* pointer, Stream stream);
int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int cudaMemset(void* to, int value, std::size_t bytes);
int cudaStreamCreate(Stream* stream);
int cudaStreamDestroy(Stream stream);
int cudaStreamSynchronize(Stream stream);
int cudaStreamAttachMemAsync(Stream stream, void* pointer, std::size_t bytes, unsigned flags);
int cudaStreamBeginCapture(Stream stream, int mode);
int cudaStreamEndCapture(Stream stream, Graph* graph);
int cudaGraphInstantiate(GraphExec* executable, Graph graph, unsigned long long flags);
int cudaGraphLaunch(GraphExec executable, Stream stream);
int cudaGraphExecDestroy(GraphExec executable);
int cudaGraphDestroy(Graph graph);
int cudaEventCreate(Event* event);
int cudaEventRecord(Event event, Stream stream);
int cudaEventSynchronize(Event event);
int cudaEventElapsedTime(float* milliseconds, Event begin, Event end);
int cudaEventDestroy(Event event);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 table[16];
.visible .entry aliquot_spin(.param .u64 nanoseconds) { ret; }
.visible .entry aliquot_add(.param .u64 to, .param .u64 a, .param .u64 b, .param .u64 words)
{ ret; }
)";

struct Wrapper {
  int magic = 0x466243B1;
  int version = 1;
  const void* data = kPtx;
  const void* file = nullptr;
};

// Stand for the addresses of a compiler's stubs and variables.
const char kAdd = 0;
const char kSpin = 0;
const char kUnknown = 0;
char g_table = 0;

class RuntimeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char pattern[] = "/tmp/aliquot-runtime-XXXXXX";
    state_ = mkdtemp(pattern);
    setenv("ALIQUOT_STATE_DIR", state_.c_str(), 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    const auto simulator = simdriver::simulator_directory();
    ASSERT_TRUE(simulator) << simulator.error().message;
    const auto spec = simdriver::make_machine({"a100x2", "test", ""}, *simulator);
    ASSERT_TRUE(spec) << spec.error().message;
    const auto machine = simdriver::start_machine(*spec, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    // By its soname, so that the runtime's own dlopen finds it.
    ASSERT_NE(dlopen((machine->library_directory() / "libcuda.so.1").c_str(), RTLD_NOW), nullptr)
        << dlerror();
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(simdriver::stop_machine("test"));
    fs::remove_all(state_);
  }
  void SetUp() override {
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    const auto add = [&](const char* host, const char* name) {
      __cudaRegisterFunction(handle_, host, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                             nullptr);
    };
    add(&kAdd, "aliquot_add");
    add(&kSpin, "aliquot_spin");
    __cudaRegisterVar(handle_, &g_table, nullptr, "table", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(handle_);
    ASSERT_EQ(cudaStreamCreate(&stream_), 0);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), 0);
    __cudaUnregisterFatBinary(handle_);
  }

  // to = a + b, each of eight words, in the way of nvcc's stubs.
  int add(void* to, void* a, void* b) {
    __cudaPushCallConfiguration({1}, {8}, 0, stream_);
    Dim3 grid;
    Dim3 block;
    std::size_t shared = 0;
    Stream stream = nullptr;
    EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
    unsigned long long words = 8;
    void* arguments[] = {&to, &a, &b, &words};
    Kernel kernel = nullptr;
    if (const int found = __cudaGetKernel(&kernel, &kAdd)) return found;
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
  }

  static inline fs::path state_;
  Wrapper wrapper_;
  void** handle_ = nullptr;
  Stream stream_ = nullptr;
};

TEST_F(RuntimeTest, LaunchesWhatACompilerRegistered) {
  void* memory = nullptr;
  void* managed = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 32), 0);
  ASSERT_EQ(cudaMallocManaged(&managed, 32, 1), 0);
  ASSERT_EQ(cudaStreamAttachMemAsync(stream_, managed, 0, 4), 0);
  ASSERT_EQ(cudaMemset(memory, 1, 32), 0);
  auto* words = static_cast<unsigned*>(managed);
  for (unsigned i = 0; i < 8; ++i) words[i] = i;
  ASSERT_EQ(add(memory, memory, managed), 0);
  ASSERT_EQ(cudaStreamSynchronize(stream_), 0);
  std::vector<unsigned> out(8);
  ASSERT_EQ(cudaMemcpy(out.data(), memory, 32, 2), 0);
  EXPECT_EQ(out[7], 0x01010108u);
  EXPECT_EQ(cudaFree(memory), 0);
  EXPECT_EQ(cudaFree(managed), 0);
}

TEST_F(RuntimeTest, CapturesLaunchesIntoAGraph) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), 0);
  void* ones = static_cast<char*>(memory) + 32;
  ASSERT_EQ(cudaMemset(memory, 0, 32), 0);
  ASSERT_EQ(cudaMemset(ones, 1, 32), 0);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, 0), 0);
  ASSERT_EQ(add(memory, memory, ones), 0);
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream_), 0);
  ASSERT_EQ(cudaStreamSynchronize(stream_), 0);
  unsigned out = 0;
  ASSERT_EQ(cudaMemcpy(&out, memory, 4, 2), 0);
  EXPECT_EQ(out, 0x03030303u);
  EXPECT_EQ(cudaGraphExecDestroy(executable), 0);
  EXPECT_EQ(cudaGraphDestroy(graph), 0);
  EXPECT_EQ(cudaFree(memory), 0);
}

TEST_F(RuntimeTest, MeasuresALaunchByAddress) {
  Event begin = nullptr;
  Event end = nullptr;
  ASSERT_EQ(cudaEventCreate(&begin), 0);
  ASSERT_EQ(cudaEventCreate(&end), 0);
  unsigned long long nanoseconds = 50'000'000;
  void* arguments[] = {&nanoseconds};
  // Work before the first event, so that the host's own delays lie before it.
  ASSERT_EQ(cudaLaunchKernel(&kSpin, {}, {}, arguments, 0, stream_), 0);
  ASSERT_EQ(cudaEventRecord(begin, stream_), 0);
  ASSERT_EQ(cudaLaunchKernel(&kSpin, {}, {}, arguments, 0, stream_), 0);
  ASSERT_EQ(cudaEventRecord(end, stream_), 0);
  ASSERT_EQ(cudaEventSynchronize(end), 0);
  float milliseconds = 0;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), 0);
  EXPECT_NEAR(milliseconds, 50, 0.5);
  EXPECT_EQ(cudaEventDestroy(begin), 0);
  EXPECT_EQ(cudaEventDestroy(end), 0);
}

TEST_F(RuntimeTest, GivesStreamOrderedMemoryBack) {
  std::size_t before = 0;
  std::size_t after = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, nullptr), 0);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4 << 20, stream_), 0);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), 0);
  ASSERT_EQ(cudaStreamSynchronize(stream_), 0);
  ASSERT_EQ(cudaMemGetInfo(&after, nullptr), 0);
  EXPECT_EQ(before, after);
}

TEST_F(RuntimeTest, KeepsTheLastErrorUntilItIsAskedFor) {
  EXPECT_EQ(cudaLaunchKernel(&kUnknown, {}, {}, nullptr, 0, stream_), 1);
  EXPECT_EQ(cudaGetLastError(), 1);
  EXPECT_EQ(cudaGetLastError(), 0);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, std::size_t{1} << 50), 2);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(memory, nullptr);
}

TEST_F(RuntimeTest, FindsVariablesByTheirHostAddress) {
  void* address = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&address, &g_table), 0);
  EXPECT_NE(address, nullptr);
  EXPECT_EQ(cudaMemset(address, 0, 64), 0);
  EXPECT_EQ(cudaGetSymbolAddress(&address, &kUnknown), 1);
  cudaGetLastError();
}

TEST_F(RuntimeTest, CallsGoToTheDeviceThatTheThreadChose) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), 0);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), 101);
  ASSERT_EQ(cudaSetDevice(1), 0);
  std::size_t before = 0;
  std::size_t there = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, nullptr), 0);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 8 << 20), 0);
  ASSERT_EQ(cudaMemGetInfo(&there, nullptr), 0);
  EXPECT_EQ(before - there, 8u << 20);
  EXPECT_EQ(cudaFree(memory), 0);
  int device = 0;
  EXPECT_EQ(cudaGetDevice(&device), 0);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(0), 0);
}

}  // namespace
