// Many processes and threads on one share, with every kind of memory at once.
//   race_every_kind PROCESSES THREADS ROUNDS DESCRIPTOR
// Each thread first takes and gives back 4 MiB linear and 2 MiB physical memory, ROUNDS times: with
// a limit of exactly that for all (and their contexts) no call may be refused. Then it races with
// kinds and sizes at random, where refusals are right and every other error is wrong; among them
// the import of 2 MiB that somebody outside the share gave out, DESCRIPTOR. Prints "held" with
// everything held and "freed" with all given back, contexts included, and waits after each for a
// line of its input; at the end "refused" (of the first part), "errors".
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

enum Kind {
  kNone = -1,
  kLinear,
  kManaged,
  kPitch,
  kAsync,
  kPhysical,
  kArray,
  kArray3D,
  kMipmapped,
  kGraph,
  kPool,
  kModule,
  kContext,
  kImport,
  kKinds
};

struct Piece {
  Kind kind = kNone;
  unsigned long long number = 0;
  void* object = nullptr;
};

constexpr char kPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

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

// Memory in a pool of its own.
CUresult take_pool(std::size_t bytes, Piece& piece) {
  CUmemPoolProps wanted{};
  wanted.type = 1;
  wanted.location = device();
  auto* pool = reinterpret_cast<CUmemoryPool*>(&piece.object);
  CUresult result = CU(cuMemPoolCreate)(pool, &wanted);
  if (result != CUDA_SUCCESS) return result;
  result = CU(cuMemAllocFromPoolAsync)(&piece.number, bytes, *pool, nullptr);
  if (result != CUDA_SUCCESS) CU(cuMemPoolDestroy)(*pool);
  return result;
}
CUresult give_pool(const Piece& piece) {
  CUresult result = CU(cuMemFreeAsync)(piece.number, nullptr);
  if (result == CUDA_SUCCESS) result = CU(cuStreamSynchronize)(nullptr);
  if (result != CUDA_SUCCESS) return result;
  return CU(cuMemPoolDestroy)(static_cast<CUmemoryPool>(piece.object));
}

// Beside the primary one, which stays current.
CUresult take_context(void** context) {
  const CUresult result = CU(cuCtxCreate_v2)(reinterpret_cast<CUcontext*>(context), 0, 0);
  CUcontext current = nullptr;
  return result == CUDA_SUCCESS ? CU(cuCtxPopCurrent_v2)(&current) : result;
}

int foreign = -1;  // memory that is not of this share

CUresult take_import(void** memory) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted{};
  wanted.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  wanted.fd = dup(foreign);
  wanted.bytes = 2 * kMiB;
  const CUresult result =
      CU(cuImportExternalMemory)(reinterpret_cast<CUexternalMemory*>(memory), &wanted);
  if (result != CUDA_SUCCESS) close(wanted.fd);  // else the driver has it
  return result;
}

CUresult take(Piece& piece, Kind kind, std::size_t bytes) {
  std::size_t pitch = 0;
  CUmemAllocationProp physical{};
  physical.type = 1;
  physical.location = device();
  const CUDA_ARRAY_DESCRIPTOR flat{1024, bytes / 4096, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR deep{1024, bytes / 4096 / 4, 4, CU_AD_FORMAT_FLOAT, 1, 0};
  piece.kind = kind;
  switch (kind) {
    case kLinear:
      return CU(cuMemAlloc_v2)(&piece.number, bytes);
    case kManaged:
      return CU(cuMemAllocManaged)(&piece.number, bytes, 1);
    case kPitch:
      return CU(cuMemAllocPitch_v2)(&piece.number, &pitch, 1000, bytes / 1024, 4);
    case kAsync:
      return CU(cuMemAllocAsync)(&piece.number, bytes, nullptr);
    case kPhysical:
      return CU(cuMemCreate)(&piece.number, (bytes + 2 * kMiB - 1) & ~(2 * kMiB - 1), &physical, 0);
    case kArray:
      return CU(cuArrayCreate_v2)(reinterpret_cast<CUarray*>(&piece.object), &flat);
    case kArray3D:
      return CU(cuArray3DCreate_v2)(reinterpret_cast<CUarray*>(&piece.object), &deep);
    case kMipmapped:
      return CU(cuMipmappedArrayCreate)(reinterpret_cast<CUmipmappedArray*>(&piece.object), &deep,
                                        3);
    case kPool:
      return take_pool(bytes, piece);
    case kModule:
      return CU(cuModuleLoadData)(reinterpret_cast<CUmodule*>(&piece.object), kPtx);
    case kContext:
      return take_context(&piece.object);
    case kImport:
      return take_import(&piece.object);
    default:
      return take_graph(bytes, &piece.object);
  }
}

CUresult give(const Piece& piece) {
  switch (piece.kind) {
    case kAsync:
      return CU(cuMemFreeAsync)(piece.number, nullptr);
    case kPhysical:
      return CU(cuMemRelease)(piece.number);
    case kArray:
    case kArray3D:
      return CU(cuArrayDestroy)(static_cast<CUarray>(piece.object));
    case kMipmapped:
      return CU(cuMipmappedArrayDestroy)(static_cast<CUmipmappedArray>(piece.object));
    case kPool:
      return give_pool(piece);
    case kModule:
      return CU(cuModuleUnload)(static_cast<CUmodule>(piece.object));
    case kContext:
      return CU(cuCtxDestroy_v2)(static_cast<CUcontext>(piece.object));
    case kImport:
      return CU(cuDestroyExternalMemory)(static_cast<CUexternalMemory>(piece.object));
    case kGraph:
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
  if (piece.kind == kNone) return;
  if (const CUresult result = give(piece); result != CUDA_SUCCESS) error("give", result);
  piece = {};
}

void fit(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    Piece linear, physical;
    for (auto [piece, kind, bytes] :
         {std::tuple(&linear, kLinear, 4 * kMiB), std::tuple(&physical, kPhysical, 2 * kMiB)})
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
    const auto kind = static_cast<Kind>(random() % kKinds);
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
  if (argc != 5) return 2;
  foreign = std::atoi(argv[4]);
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
