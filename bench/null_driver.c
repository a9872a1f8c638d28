// A driver that does next to nothing, so that what is measured around it is ours. No thread rules.
#include <stddef.h>
#include <string.h>

static unsigned long long next_address = 0x7f0000000000;
static int a_context;

int cuInit(unsigned flags) { return flags != 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGetUuid_v2(char* uuid, int device) { return memset(uuid, 0, 16), device != 0; }
int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  *context = &a_context;
  return device != 0 || flags != 0;
}
int cuCtxGetCurrent(void** context) { return *context = &a_context, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuCtxGetFlags(unsigned* flags) { return *flags = 0, 0; }
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  *address = next_address += bytes;
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** params, void** extra) {
  (void)function, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
  (void)shared, (void)stream, (void)params, (void)extra;
  return gx == 0;
}
int cuEventCreate(void** event, unsigned flags) { return *event = &a_context, (int)flags & 0; }
int cuEventRecord(void* event, void* stream) { return (void)stream, event == NULL; }
int cuEventQuery(void* event) { return event == NULL; }
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  (void)start, (void)end;
  return *milliseconds = 0.001f, 0;  // the shortest kernels there are
}
int cuMemFree_v2(unsigned long long address) { return address == 0; }
