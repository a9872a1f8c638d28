// The fake driver's own calls: devices, contexts, look-ups, linear memory.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "driver_abi/cuda_table.h"
#include "interposer/testing/fake_driver_state.h"

namespace aliquot::interposer::testing {

constexpr std::size_t kDefaultLimit = 1u << 20;  // of a context's heap and the like

Books& books() {
  static Books& the_books = *[] {
    auto* made = new Books;  // NOLINT: lives as long as the process
    made->reset();
    return made;
  }();
  return the_books;
}

CUcontext& current_context() {
  thread_local CUcontext current = nullptr;
  return current;
}

CUresult Books::enter(const char* name) {
  ++calls[name];
  const auto found = fail.find(name);
  if (found == fail.end()) return CUDA_SUCCESS;
  if (std::uint64_t& before = let_through[name]; before != 0) {
    --before;
    return CUDA_SUCCESS;
  }
  const CUresult result = found->second;
  if (!fail_for_good) fail.erase(found);
  return result;
}

void Books::reset() {
  const std::scoped_lock lock(mutex);
  contexts.clear();
  primaries.clear();
  blocks.clear();
  pools.clear();
  physical.clear();
  mappings.clear();
  objects.clear();
  graphs.clear();
  instantiated.clear();
  capturing.clear();
  events.clear();
  recorded = finished = 0;
  work_ends = true;
  stream_contexts.clear();
  kernel_ms = 0.01F;
  limits.clear();
  graph_kept_bytes = 0;
  initialised = false;
  visible.clear();
  fail.clear();
  fail_for_good = false;
  let_through.clear();
  bound.clear();
  tiles.clear();
  calls.clear();
  version = 13000;
  array_overhead_bytes = context_bytes = 0;
  pool_block_bytes = 32u << 20;
  pitch_granule = 512;
  machine.clear();
  for (int i = 0; i < 4; ++i) {
    FakeDevice device;
    device.uuid.bytes[15] = static_cast<char>(i);
    device.total_bytes = 40ull << 30;
    machine.push_back(device);
  }
}

void Books::finish_work() {
  const std::scoped_lock lock(mutex);
  finished = recorded;
}

std::uint64_t Books::taken_bytes() {
  const std::scoped_lock lock(mutex);
  std::uint64_t sum = graph_kept_bytes + contexts.size() * context_bytes;
  for (const auto& [limit, bytes] : limits)
    if (bytes > kDefaultLimit && contexts.contains(limit.first)) sum += bytes - kDefaultLimit;
  for (const auto& [address, block] : blocks) sum += block.pool == nullptr ? block.bytes : 0;
  for (const auto& [handle, pool] : pools) sum += pool.on_host ? 0 : pool.reserved;
  for (const auto& [handle, memory] : physical) sum += memory.on_device ? memory.bytes : 0;
  for (const auto& [handle, object] : objects) sum += object.bytes;
  return sum;
}

void Books::end_context(CUcontext context) {
  std::erase_if(blocks, [&](const auto& entry) { return entry.second.context == context; });
  std::erase_if(objects, [&](const auto& entry) { return entry.second.context == context; });
  contexts.erase(context);
}

// CUDA_VISIBLE_DEVICES, UUIDs only: that is what the interposer must hand over.
static void choose_visible(Books& all) {
  all.visible.clear();
  const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  if (wanted == nullptr) {
    for (std::size_t i = 0; i < all.machine.size(); ++i) all.visible.push_back(static_cast<int>(i));
    return;
  }
  std::string_view rest(wanted);
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    for (std::size_t i = 0; i < all.machine.size(); ++i)
      if (entry == uuid_text(all.machine[i].uuid)) all.visible.push_back(static_cast<int>(i));
  }
}

static bool is_device(Books& all, CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < all.visible.size();
}

static CUresult make_context(const char* name, CUcontext* out, CUdevice device) {
  Books& all = books();
  const std::scoped_lock lock(all.mutex);
  if (const CUresult result = all.enter(name)) return result;
  if (!is_device(all, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of<CUcontext>(all.fresh_name());
  all.contexts[*out] = {device, false};
  current_context() = *out;
  return CUDA_SUCCESS;
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  constexpr char kHex[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace aliquot::interposer::testing

using aliquot::interposer::testing::Books;
using aliquot::interposer::testing::books;
using aliquot::interposer::testing::current_context;
using aliquot::interposer::testing::handle_of;
namespace testing = aliquot::interposer::testing;

#define FAKE extern "C" [[gnu::visibility("default")]]
#define ENTER(name)                       \
  Books& all = books();                   \
  const std::scoped_lock lock(all.mutex); \
  if (const CUresult injected = all.enter(#name)) return injected

FAKE testing::FakeDriver* aliquot_fake_driver() { return &books(); }

FAKE CUresult cuInit(unsigned int) {
  ENTER(cuInit);
  if (!all.initialised) testing::choose_visible(all);
  all.initialised = true;
  return all.visible.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
FAKE CUresult cuDriverGetVersion(int* version) {
  ENTER(cuDriverGetVersion);
  *version = all.version;
  return CUDA_SUCCESS;
}

static CUresult proc_address(const char* symbol, void** function, int version, bool streams) {
  namespace abi = aliquot::driver_abi;
  *function = nullptr;
  const auto answer = abi::symbol_for({symbol, version, streams}, books().version);
  if (answer.status != abi::ProcAddressStatus::kFound) return CUDA_ERROR_NOT_FOUND;
  *function = testing::exported(answer.id);
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
FAKE CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  ENTER(cuGetProcAddress);
  return proc_address(symbol, function, version, flags == 2);
}
FAKE CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  ENTER(cuGetProcAddress_v2);
  const CUresult result = proc_address(symbol, function, version, flags == 2);
  if (status != nullptr)
    *status =
        result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return result;
}

FAKE CUresult cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = static_cast<int>(all.visible.size());
  return CUDA_SUCCESS;
}
FAKE CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  ENTER(cuDeviceGet);
  if (!testing::is_device(all, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
static CUresult uuid_of(Books& all, CUuuid* uuid, CUdevice device) {
  if (!all.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!testing::is_device(all, device)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = all.machine[static_cast<std::size_t>(all.visible[static_cast<std::size_t>(device)])].uuid;
  return CUDA_SUCCESS;
}
FAKE CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  ENTER(cuDeviceGetUuid);
  return uuid_of(all, uuid, device);
}
FAKE CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  ENTER(cuDeviceGetUuid_v2);
  return uuid_of(all, uuid, device);
}
FAKE CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  ENTER(cuDeviceTotalMem_v2);
  if (!testing::is_device(all, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = all.machine[0].total_bytes;
  return CUDA_SUCCESS;
}

FAKE CUresult cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice device) {
  return testing::make_context("cuCtxCreate_v2", context, device);
}
FAKE CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int,
                             CUdevice device) {
  return testing::make_context("cuCtxCreate_v4", context, device);
}
FAKE CUresult cuCtxDestroy_v2(CUcontext context) {
  ENTER(cuCtxDestroy_v2);
  if (!all.has_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  all.end_context(context);
  if (current_context() == context) current_context() = nullptr;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetCurrent(CUcontext* context) {
  ENTER(cuCtxGetCurrent);
  *context = current_context();
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER(cuCtxSetCurrent);
  current_context() = context;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetDevice(CUdevice* device) {
  ENTER(cuCtxGetDevice);
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  *device = all.contexts[current_context()].device;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  ENTER(cuCtxGetLimit);
  const auto found = all.limits.find({current_context(), limit});
  *value = found != all.limits.end() ? found->second : testing::kDefaultLimit;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  ENTER(cuCtxSetLimit);
  all.limits[{current_context(), limit}] = value;
  return CUDA_SUCCESS;
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (!all.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!testing::is_device(all, device)) return CUDA_ERROR_INVALID_DEVICE;
  auto& [primary, retains] = all.primaries[device];
  if (retains++ == 0) {
    primary = handle_of<CUcontext>(all.fresh_name());
    all.contexts[primary] = {device, true};
  }
  *context = primary;
  return CUDA_SUCCESS;
}
FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  auto& [primary, retains] = all.primaries[device];
  if (retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--retains == 0) all.end_context(primary);
  return CUDA_SUCCESS;
}
FAKE CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  ENTER(cuDevicePrimaryCtxReset_v2);
  auto& [primary, retains] = all.primaries[device];
  if (retains != 0) all.end_context(primary);
  retains = 0;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  ENTER(cuCtxGetApiVersion);
  *version = 3020;
  return all.has_context(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
FAKE CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  ENTER(cuDevicePrimaryCtxGetState);
  *flags = 0;
  *active = all.primaries[device].second != 0;
  return CUDA_SUCCESS;
}
FAKE CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc, CUdevice device,
                               unsigned int) {
  ENTER(cuGreenCtxCreate);
  auto& [primary, retains] = all.primaries[device];
  if (retains++ == 0) {
    primary = handle_of<CUcontext>(all.fresh_name());
    all.contexts[primary] = {device, true};
  }
  *green = handle_of<CUgreenCtx>(all.fresh_name());
  return CUDA_SUCCESS;
}
FAKE CUresult cuGreenCtxDestroy(CUgreenCtx) {
  ENTER(cuGreenCtxDestroy);
  auto& [primary, retains] = all.primaries[0];
  if (--retains == 0) all.end_context(primary);
  return CUDA_SUCCESS;
}

static CUresult allocate(Books& all, CUdeviceptr* address, std::uint64_t bytes) {
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = all.fresh_name();
  all.blocks[*address] = {(bytes + 511) / 512 * 512, current_context(), nullptr};
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  ENTER(cuMemAlloc_v2);
  return allocate(all, address, bytes);
}
FAKE CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int) {
  ENTER(cuMemAllocManaged);
  return allocate(all, address, bytes);
}
FAKE CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                 unsigned int) {
  ENTER(cuMemAllocPitch_v2);
  *pitch = (width + all.pitch_granule - 1) / all.pitch_granule * all.pitch_granule;
  return allocate(all, address, *pitch * height);
}
FAKE CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER(cuMemFree_v2);
  const auto found = all.blocks.find(address);
  if (found == all.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.pool != nullptr) all.pools[found->second.pool].used -= found->second.bytes;
  all.blocks.erase(found);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  ENTER(cuMemGetAddressRange_v2);
  auto after = all.blocks.upper_bound(address);
  if (after == all.blocks.begin()) return CUDA_ERROR_NOT_FOUND;
  const auto& [start, block] = *--after;
  if (address - start >= block.bytes) return CUDA_ERROR_NOT_FOUND;
  *base = start;
  *bytes = block.bytes;
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER(cuMemGetInfo_v2);
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  if (free != nullptr) *free = 1;
  if (total != nullptr) *total = all.machine[0].total_bytes;
  return CUDA_SUCCESS;
}
