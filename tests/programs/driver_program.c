// A program that uses the CUDA driver, reaching it in the way that its first argument names; prints
// one line of what it saw. With DRIVER_PROGRAM_LINKED it is linked against libcuda.so.1.
//   driver_program WAY [STEP...]
//   ways: linked, dlopen, deepbind, dlmopen, dlvsym, proc (dlopen, then cuGetProcAddress)
//   steps: reopen (close all descriptors, open others), fill (take the limit, then one byte more),
//   fork (the child does it again), hold (wait for the end of stdin), answers (for each "name
//   version flags" on stdin, or "name" for dlsym, the exported symbol that is answered and its
//   library), lookups (what dlsym says of odd names), env (the variables afterwards)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Function)();

static void* library;
static const char* way;

#ifdef DRIVER_PROGRAM_LINKED
int cuInit(unsigned);
int cuDeviceGetCount(int*);
int cuCtxCreate_v2(void**, unsigned, int);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuMemFree_v2(unsigned long long);
static Function function(const char* name) {
  if (!strcmp(name, "cuInit")) return (Function)cuInit;
  if (!strcmp(name, "cuDeviceGetCount")) return (Function)cuDeviceGetCount;
  if (!strcmp(name, "cuCtxCreate_v2")) return (Function)cuCtxCreate_v2;
  if (!strcmp(name, "cuMemGetInfo_v2")) return (Function)cuMemGetInfo_v2;
  if (!strcmp(name, "cuMemAlloc_v2")) return (Function)cuMemAlloc_v2;
  if (!strcmp(name, "cuMemFree_v2")) return (Function)cuMemFree_v2;
  return NULL;
}
#else
static Function function(const char* name) {
  if (!strcmp(way, "dlvsym")) {
    void* found = dlvsym(library, name, "NONE");
    if (found != NULL) return (Function)found;
  }
  if (!strcmp(way, "proc")) {
    Function ask = (Function)dlsym(library, "cuGetProcAddress_v2");
    char base[64];
    void* found = NULL;
    int status = -1;
    snprintf(base, sizeof base, "%s", name);
    char* suffix = strstr(base, "_v2");
    if (suffix != NULL) *suffix = 0;
    if (ask == NULL || ask(base, &found, 3020, (uint64_t)0, &status) != 0) return NULL;
    return (Function)found;
  }
  return (Function)dlsym(library, name);
}
#endif

static int open_library(void) {
  if (!strcmp(way, "linked")) return 1;
  if (!strcmp(way, "deepbind"))
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
  else if (!strcmp(way, "dlmopen"))
    library = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  else
    library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) printf("dlopen=%s\n", dlerror());
  return library != NULL;
}

static void report(const char* who) {
  int count = -1;
  size_t free_bytes = 0, total = 0;
  void* context = NULL;
  const int init = function("cuInit")(0);
  function("cuDeviceGetCount")(&count);
  const int create = function("cuCtxCreate_v2")(&context, 0, 0);
  const int info = function("cuMemGetInfo_v2")(&free_bytes, &total);
  printf("%s init=%d count=%d create=%d info=%d free=%zu total=%zu\n", who, init, count, create,
         info, free_bytes, total);
  fflush(stdout);
}

static void fill(void) {
  size_t free_bytes = 0, total = 0;
  unsigned long long address = 0, more = 0;
  function("cuMemGetInfo_v2")(&free_bytes, &total);
  const int all = function("cuMemAlloc_v2")(&address, free_bytes);
  const int above = function("cuMemAlloc_v2")(&more, (size_t)1);
  const int freed = function("cuMemFree_v2")(address);
  const int again = function("cuMemAlloc_v2")(&address, free_bytes);
  printf("fill all=%d above=%d freed=%d again=%d\n", all, above, freed, again);
  fflush(stdout);
}

static void lookups(void) {
  void* next_printf = dlsym(RTLD_NEXT, "printf");
  dlerror();
  void* absent = dlsym(library, "cuLaunchHostFunc_v2");
  const char* error = dlerror();
  printf("lookups next=%d own=%d absent=%d error=%d unknown=%d\n", next_printf != NULL,
         dlsym(RTLD_DEFAULT, "cudnnCreate") == NULL, absent == NULL, error != NULL,
         dlsym(library, "cuNoSuchFunction") == NULL);
  fflush(stdout);
}

static void answers(void) {
  Function ask = (Function)dlsym(library, "cuGetProcAddress_v2");
  char name[128];
  long version, flags;
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) {
    void* found = NULL;
    int status = -1;
    const int fields = sscanf(line, "%127s %ld %ld", name, &version, &flags);
    if (fields == 3 && ask(name, &found, (int)version, (uint64_t)flags, &status) != 0) found = NULL;
    if (fields == 1) found = dlsym(library, name);
    Dl_info info;
    memset(&info, 0, sizeof info);
    if (found != NULL) dladdr(found, &info);
    printf("%s %s\n", info.dli_sname != NULL ? info.dli_sname : "-",
           info.dli_fname != NULL ? info.dli_fname : "-");
  }
}

// As a daemon does: all descriptors closed, others opened under their numbers.
static void reopen(void) {
  for (int fd = 3; fd < 64; ++fd) close(fd);
  for (int fd = 3; fd < 11; ++fd) open("/dev/null", O_RDONLY);
}
static void count_descriptors(const char* who) {
  int open_ones = 0;
  for (int fd = 3; fd < 11; ++fd) open_ones += fcntl(fd, F_GETFD) >= 0;
  printf("%s descriptors=%d\n", who, open_ones);
}

static void child(void) {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    report("child");
    count_descriptors("child");
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  printf("fork status=%d\n", status);
}

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "dlopen";
  if (!open_library()) return 1;
  for (int i = 2; i < argc; ++i)
    if (!strcmp(argv[i], "fork-before")) child();
  if (function("cuInit") == NULL) {
    printf("no cuInit\n");
    return 1;
  }
  report("main");
  for (int i = 2; i < argc; ++i) {
    if (!strcmp(argv[i], "fill")) fill();
    if (!strcmp(argv[i], "lookups")) lookups();
    if (!strcmp(argv[i], "answers")) answers();
    if (!strcmp(argv[i], "reopen")) reopen();
    if (!strcmp(argv[i], "fork")) child();
    if (!strcmp(argv[i], "env"))
      printf("env %s\n", getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "unset");
    if (!strcmp(argv[i], "hold")) getchar();
  }
  return 0;
}
