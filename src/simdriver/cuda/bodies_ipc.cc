// Memory and events shared between processes by handle.
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/event_cells.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::uint64_t kMemoryMagic = 0x616c7169706d656d;
constexpr std::uint64_t kEventMagic = 0x616c716970657674;

// What lies in the 64 bytes of a handle.
struct MemoryHandle {
  std::uint64_t magic;
  BlockKey key;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(MemoryHandle) <= sizeof(CUipcMemHandle));
struct EventHandle {
  std::uint64_t magic;
  BlockKey key;
};
static_assert(sizeof(EventHandle) <= sizeof(CUipcEventHandle));

// Keys of blocks that this process exported.
std::map<std::uint64_t, BlockKey>& exported() {
  static auto* const all = new std::map<std::uint64_t, BlockKey>;  // NOLINT: lives for ever
  return *all;
}

struct Opened {
  BlockKey key{};
  std::uint64_t address = 0;
  unsigned uses = 0;
};
std::map<std::pair<std::uint64_t, std::uint64_t>, Opened>& opened() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): lives for ever
  static auto* const all = new std::map<std::pair<std::uint64_t, std::uint64_t>, Opened>;
  return *all;
}

// Bytes of this process become a block that others can be given: the granules [base, +bytes)
// move to the block's own file, with every allocation in them.
CUresult export_range(Context& context, std::uint64_t base, std::uint64_t bytes, BlockKey& key) {
  Answer answer;
  const CUresult result =
      library().ask(Op::kBlockConvert,
                    MemoryRequest{context.device->server, MemoryKind::kLinear, bytes}, &answer);
  if (result != CUDA_SUCCESS) return result;
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  Memory& memory = library().memory();
  auto file = std::make_shared<MemoryFile>(std::move(answer.fds[0]), MemoryFile::Sharing::kShared,
                                           memory.commit());
  for (auto at = memory.all().lower_bound(base);
       at != memory.all().end() && at->first < base + bytes; ++at) {
    Allocation& allocation = at->second;
    std::vector<std::byte> buffer(1u << 20);
    for (std::uint64_t done = 0; done < allocation.bytes; done += buffer.size()) {
      const auto part = std::min<std::uint64_t>(buffer.size(), allocation.bytes - done);
      const std::uint64_t to = allocation.base - base + done;
      if (memory.load(buffer.data(), allocation.base + done, part) != CUDA_SUCCESS ||
          !file->write(to, buffer.data(), part)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
      }
    }
  }
  for (auto at = memory.all().lower_bound(base);
       at != memory.all().end() && at->first < base + bytes; ++at) {
    at->second.file = file;
    at->second.file_offset = at->first - base;
    if (at->second.charged_bytes != 0) at->second.block = reply->key.block;
  }
  memory.arena()->punch(memory.arena_offset(base), bytes);
  if (SmallBlock* small = small_block_of(context, base)) {
    small->block = reply->key.block;
    small->file = file;
  }
  key = reply->key;
  exported()[key.block] = key;
  return CUDA_SUCCESS;
}

CUresult export_allocation(Allocation& allocation, MemoryHandle& handle) {
  Context& context = *allocation.context;
  const SmallBlock* small = small_block_of(context, allocation.base);
  const std::uint64_t base = small != nullptr ? small->base : allocation.base;
  const std::uint64_t block = small != nullptr ? small->block : allocation.block;
  handle.magic = kMemoryMagic;
  handle.offset = allocation.base - base;
  handle.bytes = allocation.bytes;
  if (block != 0) {
    handle.key = exported()[block];
    return CUDA_SUCCESS;
  }
  const std::uint64_t bytes = small != nullptr ? kGranuleBytes : allocation.charged_bytes;
  return export_range(context, base, bytes, handle.key);
}

CUresult open_handle(Context& context, const MemoryHandle& handle, std::uint64_t& address) {
  Answer answer;
  if (library().ask(Op::kBlockOpenKey, handle.key, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  Memory& memory = library().memory();
  const bool inside = handle.offset <= reply->bytes && handle.bytes <= reply->bytes - handle.offset;
  const std::uint64_t whole = (handle.bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  address = inside ? memory.reserve(whole, kGranuleBytes) : 0;
  if (address == 0) {
    library().ask(Op::kBlockRelease, BlockId{handle.key.block});
    return inside ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  }
  Allocation allocation;
  allocation.base = address;
  allocation.bytes = handle.bytes;
  allocation.kind = AllocationKind::kIpc;
  allocation.context = &context;
  allocation.device = context.device;
  for (const auto& device : library().devices()) {
    if (device->server == reply->device) allocation.device = device.get();
  }
  allocation.file = std::make_shared<MemoryFile>(std::move(answer.fds[0]),
                                                 MemoryFile::Sharing::kShared, memory.commit());
  allocation.file_offset = handle.offset;
  allocation.block = handle.key.block;
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Allocation* allocation = library().memory().find(address);
  if (allocation == nullptr || allocation->kind != AllocationKind::kLinear) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MemoryHandle handle{};
  if (const CUresult result = export_allocation(*allocation, handle)) return result;
  *out = {};
  std::memcpy(out->reserved, &handle, sizeof(handle));
  return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle raw, unsigned int flags) {
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MemoryHandle handle{};
  std::memcpy(&handle, raw.reserved, sizeof(handle));
  if (handle.magic != kMemoryMagic) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  // A process cannot open what it exported itself.
  if (exported().contains(handle.key.block)) return CUDA_ERROR_INVALID_CONTEXT;
  Opened& entry = opened()[{handle.key.block, handle.offset}];
  if (entry.uses == 0) {
    if (const CUresult result = open_handle(*context, handle, entry.address)) {
      opened().erase({handle.key.block, handle.offset});
      return result;
    }
    entry.key = handle.key;
  }
  if (entry.key.key != handle.key.key) return CUDA_ERROR_INVALID_VALUE;
  ++entry.uses;
  *address = entry.address;
  return CUDA_SUCCESS;
}
CUresult sim_cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  return sim_cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr address) {
  const Lock lock = hold();
  for (auto entry = opened().begin(); entry != opened().end(); ++entry) {
    if (entry->second.address != address) continue;
    if (--entry->second.uses > 0) return CUDA_SUCCESS;
    opened().erase(entry);
    if (Allocation* allocation = library().memory().find(address)) free_allocation(*allocation);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuIpcGetEventHandle(CUipcEventHandle* out, CUevent handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Event* event = library().events.find(handle);
  if (event == nullptr || event->cell == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const EventHandle content{kEventMagic, event->cell->key};
  *out = {};
  std::memcpy(out->reserved, &content, sizeof(content));
  return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle raw) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  EventHandle content{};
  std::memcpy(&content, raw.reserved, sizeof(content));
  if (content.magic != kEventMagic) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  std::shared_ptr<EventCell> cell;
  if (const CUresult result = open_event_cell(content.key, cell)) return result;
  auto event = std::make_unique<Event>();
  event->context = context;
  event->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  event->number = context->events++;
  event->cell = std::move(cell);
  *out = reinterpret_cast<CUevent>(library().events.add(std::move(event)));
  return CUDA_SUCCESS;
}

}  // extern "C"
