// Takes and gives back memory of every kind; prints after each step what the share says is used
// beyond the context: "KIND RESULT USED". Results are the driver's own numbers.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef int (*Function)();
static void* library;
static Function cu(const char* name) { return (Function)dlsym(library, name); }

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void) {
  size_t free = 0, total = 0;
  cu("cuMemGetInfo_v2")(&free, &total);
  return free;
}
static size_t at_first;
static void say(const char* kind, int result) {
  printf("%s %d %zu\n", kind, result, at_first - free_bytes());
}

static void linear(void) {
  unsigned long long address;
  size_t pitch = 0;
  say("linear", cu("cuMemAlloc_v2")(&address, MIB + 1));
  say("linear-free", cu("cuMemFree_v2")(address));
  int result = cu("cuMemAllocPitch_v2")(&address, &pitch, (size_t)1000, (size_t)1024, 4u);
  printf("pitch %d %d\n", result, at_first - free_bytes() == pitch * 1024);
  say("pitch-free", cu("cuMemFree_v2")(address));
  say("managed", cu("cuMemAllocManaged")(&address, 5 * MIB, 1u));
  say("managed-free", cu("cuMemFree_v2")(address));
}

struct Location {
  int type, id;
};

static void pools(void) {
  struct {
    int type, handles;
    struct Location where;
    void* security;
    size_t most;
    unsigned char reserved[56];
  } wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = 1;
  wanted.where.type = 1;
  void* pool = NULL;
  unsigned long long address;
  cu("cuMemPoolCreate")(&pool, &wanted);
  int result = cu("cuMemAllocFromPoolAsync")(&address, 3 * MIB, pool, NULL);
  printf("pool %d %d\n", result, at_first - free_bytes() >= 3 * MIB);
  cu("cuMemFreeAsync")(address, NULL);
  cu("cuStreamSynchronize")(NULL);
  say("pool-trimmed", cu("cuMemPoolTrimTo")(pool, (size_t)0));
  cu("cuMemPoolDestroy")(pool);
}

static void physical(void) {
  struct {
    int type, handles;
    struct Location where;
    void* metadata;
    unsigned char flags[8];
  } wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = 1;
  wanted.where.type = 1;
  unsigned long long handle = 0, address = 0;
  say("physical", cu("cuMemCreate")(&handle, 64 * MIB, &wanted, 0ull));
  cu("cuMemAddressReserve")(&address, 64 * MIB, (size_t)0, 0ull, 0ull);
  say("physical-mapped", cu("cuMemMap")(address, 64 * MIB, (size_t)0, handle, 0ull));
  say("physical-released", cu("cuMemRelease")(handle));
  say("physical-unmapped", cu("cuMemUnmap")(address, 64 * MIB));
}

static void arrays(void) {
  struct {
    size_t width, height;
    int format;
    unsigned channels;
  } wanted = {1024, 1024, 0x20, 4};
  void* array = NULL;
  int result = cu("cuArrayCreate_v2")(&array, &wanted);
  printf("array %d %d\n", result, at_first - free_bytes() >= 16 * MIB);
  say("array-destroyed", cu("cuArrayDestroy")(array));
}

int main(void) {
  void *context = NULL, *primary = NULL;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL || cu("cuInit")(0) != 0 || cu("cuCtxCreate_v2")(&context, 0, 0) != 0) {
    printf("no GPU\n");
    return 1;
  }
  at_first = free_bytes();
  linear();
  pools();
  physical();
  arrays();
  int result = cu("cuDevicePrimaryCtxRetain")(&primary, 0);
  printf("context %d %d\n", result, at_first - free_bytes() > 100 * MIB);
  say("context-released", cu("cuDevicePrimaryCtxRelease_v2")(0));
  return 0;
}
