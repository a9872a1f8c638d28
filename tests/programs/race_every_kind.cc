// Many processes and threads on one share, with every kind of memory at once.
//   race_every_kind PROCESSES THREADS ROUNDS
// Each thread first takes and gives back 4 MiB linear and 2 MiB physical memory, ROUNDS times: with
// a limit of exactly that for all (and their contexts) no call may be refused. Then it races with
// kinds and sizes at random, where refusals are right and every other error is wrong. Prints
// "held" with everything held and "freed" with all given back, contexts included, and waits after
// each for a line of its input; at the end "refused" (of the first part), "errors".
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "driver_abi/cuda_functions.h"

namespace {

namespace fn = aliquot::driver_abi::fn;
constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kHeld = 4;  // pieces a thread holds at once

struct Shared {
  pthread_barrier_t workers;    // all threads and the parent
  pthread_barrier_t processes;  // one thread of each, and the parent
  std::atomic<unsigned long> refused, errors;
};
Shared* shared;

void* driver() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return library;
}
#define CU(name) reinterpret_cast<fn::name>(dlsym(driver(), #name))

CUmemLocation device() { return {CU_MEM_LOCATION_TYPE_DEVICE, 0}; }

struct Piece {
  int kind = -1;
  unsigned long long number = 0;
  void* object = nullptr;
};

CUresult take_graph(std::size_t bytes, void** instance) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.pool.type = 1;
  wanted.pool.location = device();
  wanted.bytes = bytes;
  CUresult result = CU(cuGraphCreate)(&graph, 0);
  if (result == CUDA_SUCCESS)
    result = CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &wanted);
  if (result == CUDA_SUCCESS)
    result = CU(cuGraphInstantiateWithFlags)(reinterpret_cast<CUgraphExec*>(instance), graph, 0);
  if (graph != nullptr) CU(cuGraphDestroy)(graph);
  return result;
}

CUresult take(Piece& piece, int kind, std::size_t bytes) {
  std::size_t pitch = 0;
  CUmemAllocationProp physical{};
  physical.type = 1;
  physical.location = device();
  const CUDA_ARRAY_DESCRIPTOR flat{1024, bytes / 4096, CU_AD_FORMAT_FLOAT, 1};
  piece.kind = kind;
  switch (kind) {
    case 0:
      return CU(cuMemAlloc_v2)(&piece.number, bytes);
    case 1:
      return CU(cuMemAllocManaged)(&piece.number, bytes, 1);
    case 2:
      return CU(cuMemAllocPitch_v2)(&piece.number, &pitch, 1000, bytes / 1024, 4);
    case 3:
      return CU(cuMemAllocAsync)(&piece.number, bytes, nullptr);
    case 4:
      return CU(cuMemCreate)(&piece.number, (bytes + 2 * kMiB - 1) & ~(2 * kMiB - 1), &physical, 0);
    case 5:
      return CU(cuArrayCreate_v2)(reinterpret_cast<CUarray*>(&piece.object), &flat);
    default:
      return take_graph(bytes, &piece.object);
  }
}

CUresult give(const Piece& piece) {
  switch (piece.kind) {
    case 3:
      return CU(cuMemFreeAsync)(piece.number, nullptr);
    case 4:
      return CU(cuMemRelease)(piece.number);
    case 5:
      return CU(cuArrayDestroy)(static_cast<CUarray>(piece.object));
    case 6:
      return CU(cuGraphExecDestroy)(static_cast<CUgraphExec>(piece.object));
    default:
      return CU(cuMemFree_v2)(piece.number);
  }
}

void error(const char* what, CUresult result) {
  std::fprintf(stderr, "%s: %d\n", what, result);
  ++shared->errors;
}
void give_back(Piece& piece) {
  if (piece.kind < 0) return;
  if (const CUresult result = give(piece); result != CUDA_SUCCESS) error("give", result);
  piece = {};
}

void fit(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    Piece linear, physical;
    for (auto [piece, kind, bytes] :
         {std::tuple(&linear, 0, 4 * kMiB), std::tuple(&physical, 4, 2 * kMiB)})
      if (const CUresult result = take(*piece, kind, bytes); result != CUDA_SUCCESS) {
        *piece = {};
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
          ++shared->refused;
        else
          error("fit", result);
      }
    give_back(physical);
    give_back(linear);
  }
}

void race(int rounds, std::mt19937& random, std::array<Piece, kHeld>& pieces) {
  for (int i = 0; i < rounds; ++i) {
    Piece& piece = pieces[random() % kHeld];
    give_back(piece);
    const int kind = static_cast<int>(random() % 7);
    const CUresult result = take(piece, kind, (1 + random() % 24) * kMiB);
    if (result == CUDA_SUCCESS) continue;
    piece = {};
    if (result != CUDA_ERROR_OUT_OF_MEMORY) error("take", result);
  }
}

void everyone() { pthread_barrier_wait(&shared->workers); }

void work(CUcontext context, unsigned seed, int rounds) {
  CU(cuCtxSetCurrent)(context);
  std::mt19937 random(seed);
  std::array<Piece, kHeld> pieces;
  everyone();  // all contexts are there
  fit(rounds);
  everyone();
  race(rounds, random, pieces);
  everyone();  // held
  everyone();
  for (Piece& piece : pieces) give_back(piece);
}

void run_process(unsigned number, unsigned threads, int rounds) {
  CUcontext context = nullptr;
  CUresult result = CU(cuInit)(0);
  if (result == CUDA_SUCCESS) result = CU(cuDevicePrimaryCtxRetain)(&context, 0);
  if (result != CUDA_SUCCESS) error("context", result);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) all.emplace_back(work, context, number * 1000 + t, rounds);
  for (std::thread& thread : all) thread.join();
  CU(cuCtxSetCurrent)(context);
  CU(cuCtxSynchronize)();
  CUmemoryPool pool = nullptr;
  if (CU(cuDeviceGetMemPool)(&pool, 0) == CUDA_SUCCESS) CU(cuMemPoolTrimTo)(pool, 0);
  CU(cuDeviceGraphMemTrim)(0);
  result = CU(cuDevicePrimaryCtxRelease_v2)(0);
  if (result != CUDA_SUCCESS) error("release", result);
  pthread_barrier_wait(&shared->processes);
  pthread_barrier_wait(&shared->processes);
}

void say_and_wait(const char* word) {
  std::printf("%s\n", word);
  std::fflush(stdout);
  while (std::getchar() != '\n' && std::feof(stdin) == 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto processes = static_cast<unsigned>(std::atoi(argv[1]));
  const auto threads = static_cast<unsigned>(std::atoi(argv[2]));
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = new (memory) Shared{};  // NOLINT(cppcoreguidelines-owning-memory): the mapping is
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->workers, &attributes, processes * threads + 1);
  pthread_barrier_init(&shared->processes, &attributes, processes + 1);
  for (unsigned p = 0; p < processes; ++p)
    if (fork() == 0) {
      run_process(p, threads, std::atoi(argv[3]));
      _exit(0);
    }
  for (int phase = 0; phase < 3; ++phase) everyone();
  say_and_wait("held");
  everyone();
  pthread_barrier_wait(&shared->processes);
  say_and_wait("freed");
  pthread_barrier_wait(&shared->processes);
  while (wait(nullptr) > 0) {
  }
  std::printf("refused %lu\nerrors %lu\n", shared->refused.load(), shared->errors.load());
  return 0;
}
