// A program that uses the CUDA driver, reaching it in the way that its first argument names; prints
// one line of what it saw. With DRIVER_PROGRAM_LINKED it is linked against libcuda.so.1.
//   driver_program WAY [STEP...]
//   ways: linked, dlopen, deepbind, dlmopen, proc (dlopen, then cuGetProcAddress), plugin
//   (what $DRIVER_PLUGIN is linked against, opened RTLD_DEEPBIND)
//   steps: reopen (close all descriptors, open others), fill (take the limit, then one byte more),
//   fork (the child does it again), clone (the same by the bare system call), vfork (the child
//   becomes `driver_program WAY`), vfork-stranger (it becomes true, which asks for nothing),
//   vm (a child in our memory allocates, as after vfork), hold (wait for the end of stdin), answers
//   (for each "name version flags" on stdin, or "name" for the way itself, the exported symbol that
//   is answered and its library, and of cuGetProcAddress the status), lookups (what dlsym says of
//   odd names), env (the variables afterwards), threads (how many this process has), refused:PID
//   (all of the limit beside the context, while PID is stopped)
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*Function)();

static void* library;
static const char* way;

#ifdef DRIVER_PROGRAM_LINKED
Function linked_function(const char* name);
static Function function(const char* name) { return linked_function(name); }
#else
static Function function(const char* name) {
  if (!strcmp(way, "plugin")) {
    Function (*linked)(const char*) = (Function (*)(const char*))dlsym(library, "linked_function");
    return linked(name);
  }
  if (!strcmp(way, "proc")) {
    Function ask = (Function)dlsym(library, "cuGetProcAddress_v2");
    char base[64];
    void* found = NULL;
    int status = -1;
    snprintf(base, sizeof base, "%s", name);
    char* suffix = strstr(base, "_v2");
    if (suffix != NULL) *suffix = 0;
    // Of cuGetProcAddress its own second form is younger.
    const int version = strcmp(base, "cuGetProcAddress") ? 3020 : 12000;
    if (ask == NULL || ask(base, &found, version, (uint64_t)0, &status) != 0) return NULL;
    return (Function)found;
  }
  return (Function)dlsym(library, name);
}
#endif

static int open_library(void) {
  if (!strcmp(way, "linked")) return 1;
  if (!strcmp(way, "deepbind"))
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
  else if (!strcmp(way, "plugin"))
    library = dlopen(getenv("DRIVER_PLUGIN"), RTLD_NOW | RTLD_DEEPBIND);
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
  printf("lookups next=%d own=%d absent=%d error=%d unknown=%d versioned=%d\n", next_printf != NULL,
         dlsym(RTLD_DEFAULT, "cudnnCreate") == NULL, absent == NULL, error != NULL,
         dlsym(library, "cuNoSuchFunction") == NULL, dlvsym(library, "cuInit", "NONE") == NULL);
  fflush(stdout);
}

static void answers(void) {
  Function ask = function("cuGetProcAddress_v2");
  char name[128];
  long version, flags;
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) {
    void* found = NULL;
    int status = -1;
    const int fields = sscanf(line, "%127s %ld %ld", name, &version, &flags);
    if (fields == 3 && ask(name, &found, (int)version, (uint64_t)flags, &status) != 0) found = NULL;
    if (fields == 1) found = (void*)function(name);
    Dl_info info;
    memset(&info, 0, sizeof info);
    if (found != NULL) dladdr(found, &info);
    printf("%s %s", info.dli_sname != NULL ? info.dli_sname : "-",
           info.dli_fname != NULL ? info.dli_fname : "-");
    if (fields == 3) printf(" %d", status);
    printf("\n");
  }
}

static void count_threads(void) {
  int threads = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) threads += task->d_name[0] != '.';
  closedir(tasks);
  printf("threads=%d\n", threads);
}

static void refused_while_stopped(pid_t broker) {
  struct timespec start, end;
  size_t free_bytes = 0, total = 0;
  unsigned long long address = 0;
  function("cuMemGetInfo_v2")(&free_bytes, &total);
  kill(broker, SIGSTOP);
  clock_gettime(CLOCK_MONOTONIC, &start);
  const int result = function("cuMemAlloc_v2")(&address, total);
  clock_gettime(CLOCK_MONOTONIC, &end);
  kill(broker, SIGCONT);
  printf("refused=%d ms=%ld\n", result,
         (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000);
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

static size_t free_now(void) {
  size_t free_bytes = 0, total = 0;
  return function("cuMemGetInfo_v2")(&free_bytes, &total) == 0 ? free_bytes : 0;
}
// The broker is told of a death: what the child had is free a moment later.
static void wait_for(const char* what, pid_t pid, size_t free_before) {
  int status = 0;
  waitpid(pid, &status, 0);
  for (int i = 0; i < 500 && free_now() < free_before; ++i) usleep(10000);
  printf("%s status=%d, then free=%zu\n", what, status, free_now());
  fflush(stdout);
}

static void vfork_into(const char* what, const char* program) {
  const size_t free_before = free_now();
  fflush(stdout);
  const pid_t pid = vfork();
  if (pid == 0) {
    execlp(program, program, way, (char*)NULL);
    _exit(127);
  }
  wait_for(what, pid, free_before);
}

static unsigned long long taken_by_child;
static int allocate_in_parents_memory(void* ignored) {
  (void)ignored;
  return function("cuMemAlloc_v2")(&taken_by_child, (size_t)1 << 20);
}
static void child_in_our_memory(void) {
  static char stack[256 << 10] __attribute__((aligned(16)));
  fflush(stdout);
  const pid_t pid = clone(allocate_in_parents_memory, stack + sizeof stack,
                          CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  wait_for("vm", pid, 0);
  printf("vm freed=%d\n", function("cuMemFree_v2")(taken_by_child));
}

static pid_t bare_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static void child(pid_t (*make)(void), size_t free_before) {
  fflush(stdout);
  const pid_t pid = make();
  if (pid == 0) {
    report("child");
    count_descriptors("child");
    fflush(stdout);
    _exit(0);
  }
  wait_for("child", pid, free_before);
}

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "dlopen";
  if (!open_library()) return 1;
  for (int i = 2; i < argc; ++i)
    if (!strcmp(argv[i], "fork-before")) child(fork, 0);
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
    if (!strcmp(argv[i], "fork")) child(fork, free_now());
    if (!strcmp(argv[i], "clone")) child(bare_clone, free_now());
    if (!strcmp(argv[i], "vfork")) vfork_into("vfork", argv[0]);
    if (!strcmp(argv[i], "vfork-stranger")) vfork_into("vfork-stranger", "true");
    if (!strcmp(argv[i], "threads")) count_threads();
    if (!strncmp(argv[i], "refused:", 8)) refused_while_stopped(atoi(argv[i] + 8));
    if (!strcmp(argv[i], "vm")) child_in_our_memory();
    if (!strcmp(argv[i], "env"))
      printf("env %s\n", getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "unset");
    if (!strcmp(argv[i], "hold")) getchar();
  }
  return 0;
}
