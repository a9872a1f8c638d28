// Random programs on one GPU: streams that wait for each other, graphs that were captured over
// several streams, copies, fills, host functions, two threads. None of them can hang by itself.
//   random_work FIRST COUNT SECONDS: programs of seeds FIRST to FIRST+COUNT-1; "ok COUNT" at the
//   end, or which seed was under way when the seconds were over
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Function)();

static void* library;
static void* context;
static void* spin;
static unsigned long long memory;
static volatile unsigned seed_under_way;

static const char kSpin[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry aliquot_spin(.param .u64 duration_ns)\n{\n  ret;\n}\n";

enum { kStreams = 4, kEvents = 8, kBytes = 1 << 20 };

static int call(const char* name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  Function function = (Function)dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  const int result = function(a, b, c, d);
  if (result != 0) {
    fprintf(stderr, "seed %u: %s answered %d\n", seed_under_way, name, result);
    exit(1);
  }
  return result;
}
#define AT(thing) ((uint64_t)(uintptr_t)(thing))

static unsigned next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(*state >> 33);
}

static void nothing(void* data) { (void)data; }

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void*, void**, void**);

static void launch(uint64_t* random, void* stream) {
  static const unsigned kMicroseconds[] = {2, 20, 100, 300};
  const unsigned kind = next(random) % 4;
  unsigned long long duration = kMicroseconds[kind] * 1000ull;
  void* parameters[] = {&duration};
  const Launch function = (Launch)dlsym(library, "cuLaunchKernel");
  const int result = function(spin, 1, 1, 1, 32 * (kind + 1), 1, 1, 0, stream, parameters, NULL);
  if (result == 0) return;
  fprintf(stderr, "seed %u: cuLaunchKernel answered %d\n", seed_under_way, result);
  exit(1);
}

// A graph over two streams, launched up to three times.
static void capture(uint64_t* random, void** streams, void* event) {
  void* first = streams[0];
  void* second = streams[1];
  void *graph = NULL, *executable = NULL;
  call("cuStreamBeginCapture_v2", AT(first), 1, 0, 0);
  launch(random, first);
  call("cuEventRecord", AT(event), AT(first), 0, 0);
  call("cuStreamWaitEvent", AT(second), AT(event), 0, 0);
  for (unsigned i = next(random) % 4; i > 0; --i) launch(random, second);
  launch(random, first);
  call("cuEventRecord", AT(event), AT(second), 0, 0);
  call("cuStreamWaitEvent", AT(first), AT(event), 0, 0);
  call("cuStreamEndCapture", AT(first), AT(&graph), 0, 0);
  call("cuGraphInstantiateWithFlags", AT(&executable), AT(graph), 0, 0);
  for (unsigned i = next(random) % 3; i < 3; ++i)
    call("cuGraphLaunch", AT(executable), AT(streams[next(random) % kStreams]), 0, 0);
  call("cuCtxSynchronize", 0, 0, 0, 0);
  call("cuGraphExecDestroy", AT(executable), 0, 0, 0);
  call("cuGraphDestroy", AT(graph), 0, 0, 0);
}

static void one_operation(uint64_t* random, void** streams, void** events) {
  void* stream = streams[next(random) % kStreams];
  void* event = events[next(random) % kEvents];
  switch (next(random) % 12) {
    case 0:
    case 1:
      call("cuEventRecord", AT(event), AT(stream), 0, 0);
      break;
    case 2:
    case 3:
      call("cuStreamWaitEvent", AT(stream), AT(event), 0, 0);
      break;
    case 4:
      call("cuMemsetD8Async", memory, 7, kBytes, AT(stream));
      break;
    case 5:
      call("cuMemcpyDtoDAsync_v2", memory, memory + kBytes, kBytes, AT(stream));
      break;
    case 6:
      call("cuLaunchHostFunc", AT(stream), AT(&nothing), 0, 0);
      break;
    case 7:
      call("cuStreamSynchronize", AT(stream), 0, 0, 0);
      break;
    default:
      launch(random, stream);
  }
}

static void* work(void* argument) {
  uint64_t random = *(uint64_t*)argument;
  void *streams[kStreams], *events[kEvents];
  call("cuCtxSetCurrent", AT(context), 0, 0, 0);
  for (int i = 0; i < kStreams; ++i) call("cuStreamCreate", AT(&streams[i]), 1, 0, 0);
  for (int i = 0; i < kEvents; ++i) call("cuEventCreate", AT(&events[i]), 2, 0, 0);
  for (unsigned i = 10 + next(&random) % 30; i > 0; --i) one_operation(&random, streams, events);
  // In one thread of the two only: a capture of one thread makes the other's waits fail.
  if ((random & 1) == 0 && *(uint64_t*)argument % 4 < 2) capture(&random, streams, events[0]);
  for (int i = 0; i < kStreams; ++i) call("cuStreamSynchronize", AT(streams[i]), 0, 0, 0);
  for (int i = 0; i < kStreams; ++i) call("cuStreamDestroy_v2", AT(streams[i]), 0, 0, 0);
  for (int i = 0; i < kEvents; ++i) call("cuEventDestroy_v2", AT(events[i]), 0, 0, 0);
  return NULL;
}

static void too_long(int signal) {
  (void)signal;
  char text[64];
  const int length = snprintf(text, sizeof text, "seed %u hangs\n", seed_under_way);
  if (write(2, text, (size_t)length) < 0) _exit(3);
  _exit(2);
}

int main(int count, char** arguments) {
  if (count != 4) return 64;
  const unsigned first = (unsigned)atoi(arguments[1]), programs = (unsigned)atoi(arguments[2]);
  signal(SIGALRM, too_long);
  alarm((unsigned)atoi(arguments[3]));
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 65;
  void* module = NULL;
  call("cuInit", 0, 0, 0, 0);
  call("cuCtxCreate_v2", AT(&context), 0, 0, 0);
  call("cuModuleLoadData", AT(&module), AT(kSpin), 0, 0);
  call("cuModuleGetFunction", AT(&spin), AT(module), AT("aliquot_spin"), 0);
  call("cuMemAlloc_v2", AT(&memory), 2 * kBytes, 0, 0);
  for (unsigned i = 0; i < programs; ++i) {
    seed_under_way = first + i;
    uint64_t seeds[] = {(first + i) * 4ull, (first + i) * 4ull + 2};
    pthread_t other;
    pthread_create(&other, NULL, work, &seeds[1]);
    work(&seeds[0]);
    pthread_join(other, NULL);
  }
  printf("ok %u\n", programs);
  return 0;
}
